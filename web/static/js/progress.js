// @ts-check
// The progress line of a job: calls per second over the last half hour, phases and troubled states as
// bands, and the moments at which the state or the attempt changed. uPlot draws it.
import { clock, duration } from "./times.js";
import { isUtc } from "./controls.js";

/** @typedef {[string | number, number][]} Runs */
/** @typedef {{ago_s: number[], calls_per_s: number[], states: Runs, phases: Runs, attempts: Runs}} Progress see job_data.py */
/** @typedef {{from: number, to: number, value: string | number}} Span in seconds of this machine's clock */

const WINDOW_S = 1800;
const SHORTEST_S = 60;
const HEIGHT = 168;
const SLACK_S = 0.5;
const PATIENCE_MS = 2000;
const GAP_S = 15; // a longer silence between two points is a gap in the line
const TROUBLED = { expected_wait: "--accent-soft", slow: "--suspected-soft", suspected: "--suspected-soft", hung: "--hung-soft", failed: "--failed-soft", unknown: "--raised" };
const MARKED = new Set(["suspected", "hung", "failed"]);

/** @type {number[]} */
let times = [];
/** @type {(number | null)[]} */
let rates = [];
/** @type {{states: (string | number)[], phases: (string | number)[], attempts: (string | number)[]}} */
let told = { states: [], phases: [], attempts: [] };
/** @type {any} uPlot is a plain script without types here */
let plot = null;
let isBrought = false;

/** @param {Runs} runs */
function unrolled(runs) {
  return runs.flatMap(([value, count]) => Array(count).fill(value));
}

/** Add what is new; points older than the window go. @param {Progress} progress */
function take(progress) {
  const now = Date.now() / 1000;
  const last = times[times.length - 1] ?? -Infinity;
  const columns = { states: unrolled(progress.states), phases: unrolled(progress.phases), attempts: unrolled(progress.attempts) };
  progress.ago_s.forEach((ago, at) => {
    if (now - ago <= last + SLACK_S) return;
    times.push(now - ago);
    rates.push(progress.calls_per_s[at]);
    told.states.push(columns.states[at]);
    told.phases.push(columns.phases[at]);
    told.attempts.push(columns.attempts[at]);
  });
  const kept = times.findIndex((time) => time >= now - WINDOW_S);
  if (kept > 0) [times, rates, told.states, told.phases, told.attempts].forEach((column) => column.splice(0, kept));
}

/** Times and rates as they are drawn: a silence breaks the line. */
function drawn() {
  /** @type {[number[], (number | null)[]]} */
  const columns = [[], []];
  times.forEach((time, at) => {
    if (at > 0 && time - times[at - 1] > GAP_S) {
      columns[0].push((time + times[at - 1]) / 2);
      columns[1].push(null);
    }
    columns[0].push(time);
    columns[1].push(rates[at]);
  });
  return columns;
}

/** Where a value lasted. @param {(string | number)[]} values @returns {Span[]} */
function spans(values) {
  /** @type {Span[]} */
  const found = [];
  values.forEach((value, at) => {
    const last = found[found.length - 1];
    if (last && last.value === value) last.to = times[at];
    else {
      if (last) last.to = times[at];
      found.push({ from: times[at], to: times[at], value });
    }
  });
  return found;
}

function parts() {
  const root = document.getElementById("progress-chart");
  const into = root?.querySelector(".chart-plot");
  const legend = root?.querySelector(".chart-legend");
  return root && into instanceof HTMLElement && legend ? { root, into, legend } : null;
}

/** @param {string} name */
function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Bands behind the line: troubled states over the whole height, phases along the foot. @param {any} u */
function drawBands(u) {
  const { ctx, bbox } = u;
  const x = (/** @type {number} */ time) => Math.max(bbox.left, u.valToPos(time, "x", true));
  ctx.save();
  for (const span of spans(told.states)) {
    const name = TROUBLED[/** @type {keyof typeof TROUBLED} */ (span.value)];
    if (!name) continue;
    ctx.fillStyle = token(name);
    ctx.fillRect(x(span.from), bbox.top, Math.max(2, x(span.to) - x(span.from)), bbox.height);
  }
  for (const span of spans(told.phases)) {
    if (span.value === "") continue;
    drawPhase(ctx, bbox, x(span.from), x(span.to), String(span.value));
  }
  ctx.restore();
}

/** @param {CanvasRenderingContext2D} ctx @param {{top: number, height: number}} bbox @param {number} from @param {number} to @param {string} name */
function drawPhase(ctx, bbox, from, to, name) {
  const scale = devicePixelRatio || 1;
  const foot = bbox.top + bbox.height;
  ctx.fillStyle = token("--rule-strong");
  ctx.fillRect(from, foot - 3 * scale, Math.max(2, to - from), 3 * scale);
  ctx.font = `${11 * scale}px ${token("--font")}`;
  if (ctx.measureText(name).width + 8 * scale > to - from) return;
  ctx.fillStyle = token("--muted");
  ctx.textAlign = "left";
  ctx.fillText(name, from + 4 * scale, foot - 8 * scale);
}

/** Lines at the moments of suspicion and hang, and where an attempt began. @param {any} u */
function drawMoments(u) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `500 ${11 * scale}px ${token("--font")}`;
  ctx.textAlign = "left";
  const shown = moments().map((moment) => ({ ...moment, x: u.valToPos(moment.at, "x", true) }));
  let free = bbox.left;
  shown.forEach((moment, at) => {
    if (moment.x < bbox.left) return;
    ctx.strokeStyle = ctx.fillStyle = token(moment.colour);
    ctx.lineWidth = scale;
    ctx.setLineDash(moment.isDashed ? [3 * scale, 3 * scale] : []);
    ctx.beginPath();
    ctx.moveTo(moment.x, bbox.top);
    ctx.lineTo(moment.x, bbox.top + bbox.height);
    ctx.stroke();
    // Right of its line, or left of it where the next line is too near; left out without room.
    const width = ctx.measureText(moment.text).width + 8 * scale;
    const end = shown[at + 1]?.x ?? bbox.left + bbox.width;
    const left = moment.x + width <= end ? moment.x : moment.x - width;
    if (left < free) return;
    free = left + width;
    ctx.fillText(moment.text, left + 4 * scale, bbox.top + 11 * scale);
  });
  ctx.restore();
}

function moments() {
  const begun = (/** @type {Span[]} */ found) => found.slice(1);
  const states = begun(spans(told.states)).filter((span) => MARKED.has(String(span.value)));
  const attempts = begun(spans(told.attempts));
  return [
    ...states.map((span) => ({ at: span.from, text: String(span.value), colour: `--${span.value}`, isDashed: false })),
    ...attempts.map((span) => ({ at: span.from, text: `attempt ${span.value}`, colour: "--muted", isDashed: true })),
  ].sort((one, other) => one.at - other.at);
}

/** What the line shows, for those who do not see it. */
function summary() {
  const known = rates.filter((rate) => rate !== null);
  if (known.length === 0) return "";
  const mean = known.reduce((sum, rate) => sum + rate, 0) / known.length;
  const span = duration(times[times.length - 1] - times[0]);
  const range = `Over ${span}: ${short(mean)} calls per second and rank on average, at least ${short(Math.min(...known))}, at most ${short(Math.max(...known))}.`;
  const changes = moments().map((moment) => `${moment.text} at ${clock(new Date(moment.at * 1000))}.`);
  const phases = spans(told.phases).filter((one) => one.value !== "").map((one) => `In phase ${one.value} from ${clock(new Date(one.from * 1000))} for ${duration(one.to - one.from)}.`);
  return [range, ...changes, ...phases.slice(-8)].join(" ");
}

/** @param {number} rate */
function short(rate) {
  return String(Number(rate.toPrecision(3)));
}

/** @param {any} u */
function tell(u) {
  const found = parts();
  const at = u.cursor.idx;
  const time = at === null || at === undefined ? undefined : u.data[0][at];
  const here = time === undefined ? -1 : times.indexOf(time);
  if (!found) return;
  found.legend.textContent =
    here < 0
      ? ""
      : [clock(new Date(times[here] * 1000)), `${short(rates[here] ?? 0)} per second`, String(told.states[here]).replace("_", " "), told.phases[here]]
          .filter((text) => text !== "")
          .join(" · ");
}

/** @param {number} width */
function options(width) {
  const axis = { stroke: token("--muted"), font: `12px ${token("--font")}`, ticks: { show: false } };
  const grid = { stroke: token("--rule"), width: 1 };
  return {
    width,
    height: HEIGHT,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    tzDate: (/** @type {number} */ at) => (isUtc() ? uPlotOf().tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
    scales: { x: { range: shownWindow }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ top) => [0, Math.max(0.1, top * 1.15)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 90, size: 30, values: clockValues },
      { ...axis, grid, size: 46, space: 40, values: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map(short) },
    ],
    series: [{}, { stroke: token("--accent"), width: 1.5, fill: token("--accent-soft"), points: { show: false }, spanGaps: false }],
    hooks: { drawClear: [drawBands], draw: [drawMoments], setCursor: [tell] },
  };
}

/** @param {any} _ @param {number[]} splits */
function clockValues(_, splits) {
  const isFine = splits.length > 1 && splits[1] - splits[0] < 60;
  return splits.map((at) => clock(new Date(at * 1000)).slice(11, isFine ? 19 : 16));
}

function shownWindow() {
  const isOver = parts()?.root.hasAttribute("data-over") ?? false;
  const end = (isOver ? times[times.length - 1] : undefined) ?? Date.now() / 1000;
  const span = Math.min(WINDOW_S, Math.max(SHORTEST_S, end - (times[0] ?? end)));
  return [end - span, end];
}

function uPlotOf() {
  // @ts-ignore: a plain script without types here
  return window.uPlot;
}

/** Bring uPlot once the browser has nothing more urgent to do: the ranks come first. @param {HTMLElement} root */
function bring(root) {
  if (isBrought || !root.dataset.plotter) return;
  isBrought = true;
  const script = document.createElement("script");
  script.src = root.dataset.plotter;
  script.addEventListener("load", () => setTimeout(draw)); // in a task of its own
  const bringNow = () => document.head.append(script);
  if ("requestIdleCallback" in window) requestIdleCallback(bringNow, { timeout: PATIENCE_MS });
  else setTimeout(bringNow);
}

function draw() {
  const found = parts();
  const isPaused = plot !== null && document.documentElement.dataset.paused === "1";
  if (!found || times.length < 2 || isPaused) return;
  if (!uPlotOf()) return bring(found.root);
  found.root.hidden = false;
  const width = found.into.clientWidth;
  if (width === 0) return;
  if (plot) plot.setData(drawn());
  else plot = new (uPlotOf())(options(width), drawn(), found.into);
  const says = document.getElementById("progress-says");
  if (says) says.textContent = summary();
}

/** With other colours or in another time zone. */
function redraw() {
  plot?.destroy();
  plot = null;
  draw();
}

export function startProgress() {
  const found = parts();
  if (!found) return;
  document.addEventListener("hangwatch:progress", (event) => {
    take(/** @type {CustomEvent} */ (event).detail);
    draw();
  });
  document.addEventListener("hangwatch:paused", draw);
  document.addEventListener("hangwatch:theme", redraw);
  document.addEventListener("hangwatch:utc", redraw);
  new ResizeObserver(() => {
    const width = found.into.clientWidth;
    if (plot && width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    else draw();
  }).observe(found.root);
}
