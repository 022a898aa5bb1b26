// @ts-check
// The rank grid on a canvas: fixed places, shape and colour for each state, pointer and arrow keys.
// The table of ranks below it says the same to those who do not see it.
import { drawCell, hatch, outline } from "./marks.js";
import { layout } from "./layout.js";

/**
 * @typedef {[number | null, number][]} Counts runs of numbers in step: the first, and how many
 * @typedef {{nodes: {name: string, ranks: Counts}[], pids: Counts}} Places
 * @typedef {{states: [string, number][], texts: string[], doing: [number, number][]}} Looks
 * @typedef {{places?: Places, looks: Looks}} Packed see rank_grid.py
 * @typedef {{rank: number, node: string, state: string, isStale: boolean, pid: number | null, doing: string}} Cell
 */

const WORDS = { h: "healthy", w: "waiting", c: "culprit", s: "silent", g: "gone", u: "unknown", f: "finished" };

/** @type {Cell[]} */
let cells = [];
/** @type {import("./layout.js").Layout | null} */
let places = null;
let chosen = -1;
let hovered = -1;
/** @type {Places} */
let known = { nodes: [], pids: [] };

/** @returns {{root: HTMLElement, canvas: HTMLCanvasElement, tip: HTMLElement} | null} */
function parts() {
  const root = document.getElementById("grid");
  const canvas = root?.querySelector("canvas");
  const tip = root?.querySelector(".tip");
  return root && canvas && tip instanceof HTMLElement ? { root, canvas, tip } : null;
}

/** @param {Counts} runs @returns {(number | null)[]} */
function counted(runs) {
  return runs.flatMap(([first, count]) =>
    Array.from({ length: count }, (_, step) => (first === null ? null : first + step)),
  );
}

/** @param {Places} placed @param {Looks} looks @returns {Cell[]} */
export function unpack(placed, looks) {
  const doing = looks.doing.flatMap(([text, count]) => Array(count).fill(looks.texts[text]));
  const letters = looks.states.flatMap(([letter, count]) => Array(count).fill(letter));
  const pids = counted(placed.pids);
  return placed.nodes
    .flatMap((node) => counted(node.ranks).map((rank) => ({ rank: Number(rank), node: node.name })))
    .map((cell, at) => {
      const state = letters[at].toLowerCase();
      return { ...cell, state, isStale: state !== letters[at], pid: pids[at], doing: doing[at] };
    });
}

/** @param {string} text what the server sent: everything, or how the ranks look now */
function read(text) {
  if (!text) return;
  const data = /** @type {Packed} */ (JSON.parse(text));
  const isPlaced = data.places !== undefined;
  if (data.places) known = data.places;
  cells = unpack(known, data.looks);
  if (isPlaced) measure();
  draw();
  if (chosen >= 0 && parts()?.canvas === document.activeElement) point(chosen);
}

function measure() {
  const found = parts();
  const nodes = known.nodes.map((node) => ({ name: node.name, ranks: counted(node.ranks) }));
  if (found && nodes.length > 0) places = layout(nodes, found.root.clientWidth);
}

function draw() {
  const found = parts();
  if (!found || !places) return;
  const { canvas, root } = found;
  const scale = devicePixelRatio || 1;
  const width = root.clientWidth;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(places.height * scale);
  canvas.style.height = `${places.height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  context.clearRect(0, 0, width, places.height);
  const style = getComputedStyle(document.documentElement);
  context.font = `12px ${style.getPropertyValue("--font")}`;
  context.fillStyle = style.getPropertyValue("--muted");
  for (const label of places.labels) context.fillText(label.text, label.x, label.y, label.width);
  cells.forEach((cell, index) => {
    const spot = /** @type {import("./layout.js").Layout} */ (places).spots[index];
    drawCell(context, style, cell.state, spot.x, spot.y, spot.size);
    if (cell.isStale) hatch(context, style, spot.x, spot.y, spot.size);
    if (index === chosen || index === hovered) outline(context, style, spot.x, spot.y, spot.size);
  });
}

/** @param {number} index */
function point(index) {
  const found = parts();
  if (!found || !places) return;
  const { tip, root } = found;
  const cell = cells[index];
  if (!cell) {
    tip.hidden = true;
    return;
  }
  const spot = places.spots[index];
  const title = document.createElement("strong");
  title.textContent = `rank ${cell.rank} · ${WORDS[/** @type {keyof typeof WORDS} */ (cell.state)]}${cell.isStale ? ", not heard lately" : ""}`;
  const where = document.createElement("span");
  where.textContent = `${cell.node || "no node yet"}${cell.pid === null ? "" : ` · pid ${cell.pid}`}`;
  const doing = document.createElement("span");
  doing.textContent = cell.doing;
  tip.replaceChildren(title, where, ...(cell.doing ? [doing] : []));
  tip.hidden = false;
  tip.style.left = `${Math.max(0, Math.min(spot.x, root.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${spot.y + spot.size + 6}px`;
}

/** @param {number} index */
function choose(index) {
  chosen = Math.max(0, Math.min(cells.length - 1, index));
  draw();
  point(chosen);
  const cell = cells[chosen];
  const reading = document.getElementById("grid-reading");
  if (cell && reading) {
    const state = WORDS[/** @type {keyof typeof WORDS} */ (cell.state)];
    reading.textContent = `rank ${cell.rank}, ${cell.node}, ${state}, ${cell.doing}`;
  }
}

/** Show one rank's row: jump when it is in the table, else ask the server for it. @param {number} index */
function open(index) {
  const cell = cells[index];
  if (!cell) return;
  const row = document.getElementById(`rank-${cell.rank}`);
  if (!row) {
    location.assign(`?ranks=${cell.rank}#rank-${cell.rank}`);
    return;
  }
  history.replaceState(null, "", `#rank-${cell.rank}`);
  row.focus();
  row.scrollIntoView({ block: "center" });
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (!places) return;
  const from = chosen < 0 ? firstOdd() : chosen;
  const steps = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: cells.length - 1 };
  if (event.key in steps) choose(chosen < 0 ? from : steps[/** @type {keyof typeof steps} */ (event.key)]);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") choose(places.vertical(from, event.key === "ArrowDown"));
  else if (event.key === "Enter") open(from);
  else if (event.key === "Escape") point(-1);
  else return;
  event.preventDefault();
}

/** Where walking begins: at a culprit if there is one. */
function firstOdd() {
  return Math.max(0, cells.findIndex((cell) => cell.state === "c"));
}

/** @param {PointerEvent} event @returns {number} */
function under(event) {
  return places ? places.at(event.offsetX, event.offsetY) : -1;
}

export function startGrid() {
  const found = parts();
  if (!found) return;
  const { root, canvas } = found;
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("focus", () => choose(chosen < 0 ? firstOdd() : chosen));
  canvas.addEventListener("blur", () => point(-1));
  canvas.addEventListener("pointermove", (event) => {
    const index = under(event);
    if (index === hovered) return;
    hovered = index;
    draw();
    point(index);
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    draw();
    point(-1);
  });
  canvas.addEventListener("pointerup", (event) => open(under(event)));
  new ResizeObserver(() => {
    measure();
    draw();
  }).observe(root);
  document.addEventListener("hangwatch:theme", draw);
  document.addEventListener("data", (event) => read(/** @type {CustomEvent} */ (event).detail.data));
  read(root.dataset.grid ?? "");
}
