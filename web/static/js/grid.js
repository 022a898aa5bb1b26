// @ts-check
// The ranks of a job on two canvases, by node and as a mesh, and what the reader chooses to see of
// them. The table of ranks below says the same to those who do not see it.
import { CanvasGrid } from "./canvas_grid.js";
import { layout } from "./layout.js";
import { firstView, meshLayout, nameOf, placeOf, readView, withBeside, written } from "./mesh.js";
import { Ranks } from "./ranks.js";

const ranks = new Ranks();
/** @type {CanvasGrid | null} */
let byNode = null;
/** @type {CanvasGrid | null} */
let asMesh = null;
/** @type {import("./mesh.js").Axis[]} */
let axes = [];
/** @type {import("./mesh.js").View | null} */
let view = null;
const watched = new ResizeObserver(() => byNode?.root.clientWidth === laidWidth || lay());
/** @type {{places?: import("./ranks.js").Places, looks?: import("./ranks.js").Looks}} */
let owed = {}; // what came and is not shown yet
let laidWidth = -1; // before there is a first layout
/** @type {(() => void) | null} takes in what came with the page; null once that is done */
let begin = null;

/** @param {string} text what the server sent: everything, or what is new */
function read(text) {
  if (!text) return;
  const { places, looks, progress } = JSON.parse(text);
  if (places) owed = { places };
  if (looks) owed = { ...owed, looks };
  if (document.documentElement.dataset.paused !== "1") take();
  if (progress) document.dispatchEvent(new CustomEvent("hangwatch:progress", { detail: progress }));
}

/** Show what came, also while the page was paused. */
function take() {
  const { places, looks } = owed;
  owed = {};
  if (places) ranks.place(places);
  if (!looks) return;
  const changed = ranks.look(looks);
  if (places && laidWidth >= 0) lay();
  else if (changed === null) [byNode, asMesh].forEach((grid) => grid?.repaint());
  else [byNode, asMesh].forEach((grid) => grid?.redraw(changed));
}

function lay() {
  laidWidth = byNode?.root.clientWidth ?? 0;
  if (ranks.count === 0) return;
  if (byNode) byNode.lay(layout(ranks.nodes, laidWidth));
  if (asMesh && view) asMesh.lay(meshLayout(axes, view, ranks.index, asMesh.root.clientWidth));
}

/** @param {number} cell */
function lines(cell) {
  const [first, ...rest] = ranks.lines(cell);
  if (axes.length === 0) return [first, ...rest];
  const place = placeOf(axes, ranks.ranks[cell]);
  return [first, place.map((at, axis) => `${nameOf(axes[axis])} ${at}`).join(" · "), ...rest];
}

/** Show one rank's row: jump when it is in the table, else ask the server for it. @param {number} cell @param {boolean} isAdded to the filter */
function open(cell, isAdded) {
  const rank = ranks.ranks[cell];
  const address = new URL(location.href);
  const asked = address.searchParams.get("ranks");
  const row = document.getElementById(`rank-${rank}`);
  if (row && !isAdded) {
    history.replaceState(null, "", `#rank-${rank}`);
    row.focus();
    row.scrollIntoView({ block: "center" });
    return;
  }
  address.searchParams.set("ranks", isAdded && asked ? `${asked},${rank}` : String(rank));
  address.hash = isAdded ? "ranks" : `rank-${rank}`;
  location.assign(address.href.replaceAll("%2C", ","));
}

/** @param {import("./mesh.js").View} next */
function show(next) {
  view = withBeside(axes, next);
  const address = new URL(location.href);
  address.searchParams.set("mesh", written(view));
  history.replaceState(null, "", address.href.replaceAll("%2C", ","));
  showControls();
  lay();
}

/** The controls say what is drawn; a dimension that is drawn whole has no place to choose. */
function showControls() {
  const block = document.querySelector("[data-axes]");
  if (!block || !view) return;
  for (const [name, at] of Object.entries({ rows: view.rows, columns: view.columns })) {
    const select = block.querySelector(`select[name=${name}]`);
    if (select instanceof HTMLSelectElement) select.value = String(at);
  }
  for (const input of block.querySelectorAll("input[data-axis]")) {
    if (!(input instanceof HTMLInputElement)) continue;
    const at = Number(input.dataset.axis);
    input.closest("label")?.toggleAttribute("hidden", [view.rows, view.columns, view.beside].includes(at));
    input.value = String(view.at[at]);
  }
}

/** @param {Event} event */
function onControl(event) {
  const control = event.target;
  if (!view) return;
  if (control instanceof HTMLSelectElement) {
    const chosen = Number(control.value);
    const [mine, other] = control.name === "rows" ? /** @type {const} */ (["rows", "columns"]) : /** @type {const} */ (["columns", "rows"]);
    // Choosing what the other side shows swaps the two.
    show({ ...view, [mine]: chosen, [other]: view[other] === chosen ? view[mine] : view[other] });
  }
  if (control instanceof HTMLInputElement && control.checkValidity() && control.value !== "") {
    show({ ...view, at: view.at.map((place, axis) => (axis === Number(control.dataset.axis) ? Number(control.value) : place)) });
  }
}

/** Use the block of matrices that the page has now; another mesh comes as another block. */
function attachMesh() {
  const block = document.querySelector("[data-axes]");
  const root = block?.querySelector(".grid");
  if (!(block instanceof HTMLElement) || !(root instanceof HTMLElement)) {
    [asMesh, axes] = [null, []];
    return;
  }
  if (asMesh?.root === root) return;
  axes = JSON.parse(block.dataset.axes ?? "[]");
  asMesh = new CanvasGrid(root, ranks, { open, lines });
  const asked = new URLSearchParams(location.search).get("mesh");
  view = (asked && readView(axes, asked)) || firstView(axes, ranks.ranks[ranks.firstOdd()] ?? 0);
  block.addEventListener("change", onControl);
  showControls();
}

/** Draw on what the page has now: ranks come and go with their agents, and the canvas with them. */
function attach() {
  begin?.();
  const root = document.getElementById("grid");
  const [before, beforeMesh] = [byNode, asMesh];
  if (!root) byNode = null;
  else if (byNode?.root !== root) byNode = new CanvasGrid(root, ranks, { open, lines });
  attachMesh();
  if (byNode === before && asMesh === beforeMesh) return;
  watched.disconnect();
  if (root) watched.observe(root);
  lay();
}

/** Links to another colouring or lens keep the matrices that are shown. @param {MouseEvent} event */
function keepMesh(event) {
  const link = event.target instanceof Element ? event.target.closest("a[data-choice]") : null;
  const mesh = new URLSearchParams(location.search).get("mesh");
  if (!(link instanceof HTMLAnchorElement) || !mesh) return;
  const address = new URL(link.href);
  address.searchParams.set("mesh", mesh);
  link.href = address.href;
}

export function startGrid() {
  if (!document.getElementById("live")) return;
  begin = () => {
    begin = null;
    read(document.getElementById("grid")?.dataset.sent ?? "");
    requestAnimationFrame(attach);
  };
  // In tasks of their own: with all else that starts here, thousands of ranks would hold up the page.
  setTimeout(() => begin?.());
  listen();
}

function listen() {
  document.addEventListener("hangwatch:shown", attach);
  document.addEventListener("hangwatch:theme", () => [byNode, asMesh].forEach((grid) => grid?.repaint()));
  document.addEventListener("hangwatch:paused", () => {
    if (document.documentElement.dataset.paused !== "1") take();
  });
  document.addEventListener("data", (event) => {
    begin?.();
    read(/** @type {CustomEvent} */ (event).detail.data);
  });
  document.addEventListener("click", keepMesh, true);
  document.addEventListener("change", (event) => {
    const select = event.target;
    if (select instanceof HTMLSelectElement && select.matches("[data-submits]")) select.form?.requestSubmit();
  });
}
