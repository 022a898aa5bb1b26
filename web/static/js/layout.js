// @ts-check
// Where each rank of the grid has its place: one block for each node, blocks in even columns. The
// same ranks and the same width give the same places: position is memory.

/**
 * @typedef {{text: string, x: number, y: number, width: number, align?: CanvasTextAlign}} Label
 * @typedef {{cells: Int32Array, xs: Float32Array, ys: Float32Array, side: number, labels: Label[],
 *   width: number, height: number}} Layout `cells` are indexes of ranks, at (xs, ys)
 * @typedef {{name: string, start: number, count: number}} Node
 */

const ROOMY_UP_TO = 1024; // ranks; with more, the whole matters more than the single node's name
const WIDEST_ROW = 16; // ranks of one node beyond this go to a second line
const TALLEST = 900; // pixels that a dense grid aims to stay within
const GUTTER = 96; // for the names of the first node of some lines
const NARROW = 600;
const NAME_EVERY = 48; // pixels between two names in the gutter

/** @param {Node[]} nodes @param {number} width @returns {Layout} */
export function layout(nodes, width) {
  const count = nodes.reduce((sum, node) => sum + node.count, 0);
  return count <= ROOMY_UP_TO ? roomy(nodes, count, width) : dense(nodes, count, width);
}

/** Every node has its name above its ranks. @param {Node[]} nodes @param {number} count @param {number} width */
function roomy(nodes, count, width) {
  const side = count <= 64 ? 28 : 18;
  const most = Math.max(1, ...nodes.map((node) => node.count));
  const across = Math.max(1, Math.min(most, WIDEST_ROW, Math.floor(width / side)));
  const step = { x: Math.max(across * side, 88) + 12, y: 20 + Math.ceil(most / across) * side + 12 };
  const columns = Math.max(1, Math.floor((width + 12) / step.x));
  const made = blank(count, side, width, Math.ceil(nodes.length / columns) * step.y);
  nodes.forEach((node, at) => {
    const left = (at % columns) * step.x;
    const top = Math.floor(at / columns) * step.y;
    made.labels.push({ text: node.name || "not reported", x: left + 4, y: top + 13, width: step.x - 12 });
    block(made, node, left, top + 20, across);
  });
  return made;
}

/** Blocks side by side, a name for some lines. @param {Node[]} nodes @param {number} count @param {number} width */
function dense(nodes, count, width) {
  const gutter = width < NARROW ? 0 : GUTTER;
  const most = Math.max(1, ...nodes.map((node) => node.count));
  const plans = [12, 11, 10, 9, 8, 7, 6, 5].map((side) => {
    const gap = most === 1 ? 0 : Math.max(3, Math.round(side / 2));
    const across = Math.max(1, Math.min(most, WIDEST_ROW, Math.floor((width - gutter) / side)));
    const columns = Math.max(1, Math.floor((width - gutter + gap) / (across * side + gap)));
    const line = Math.ceil(most / across) * side + (most === 1 ? 0 : 3);
    return { side, gap, across, columns, line, height: Math.ceil(nodes.length / columns) * line };
  });
  const plan = plans.find((one) => one.height <= TALLEST) ?? plans[plans.length - 1];
  const made = blank(count, plan.side, width, plan.height);
  let named = -NAME_EVERY;
  nodes.forEach((node, at) => {
    const top = Math.floor(at / plan.columns) * plan.line;
    const column = at % plan.columns;
    if (column === 0 && gutter > 0 && top - named >= NAME_EVERY) {
      named = top;
      const text = node.name || "not reported";
      made.labels.push({ text, x: gutter - 12, y: Math.max(10, top + plan.side - 1), width: gutter - 12, align: "right" });
    }
    block(made, node, gutter + column * (plan.across * plan.side + plan.gap), top, plan.across);
  });
  return made;
}

/** @param {number} count @param {number} side @param {number} width @param {number} height @returns {Layout} */
export function blank(count, side, width, height) {
  const cells = new Int32Array(count);
  for (let at = 0; at < count; at += 1) cells[at] = at;
  return { cells, xs: new Float32Array(count), ys: new Float32Array(count), side, labels: [], width, height: Math.max(1, height) };
}

/** @param {Layout} made @param {Node} node @param {number} left @param {number} top @param {number} across */
function block(made, node, left, top, across) {
  for (let place = 0; place < node.count; place += 1) {
    made.xs[node.start + place] = left + (place % across) * made.side;
    made.ys[node.start + place] = top + Math.floor(place / across) * made.side;
  }
}

/** The place under a point; -1 for none. @param {Layout} places @param {number} x @param {number} y */
export function under(places, x, y) {
  const { xs, ys, side } = places;
  for (let at = 0; at < xs.length; at += 1) {
    if (x >= xs[at] && x < xs[at] + side && y >= ys[at] && y < ys[at] + side) return at;
  }
  return -1;
}

/** The nearest place on the next line, above or below. @param {Layout} places @param {number} from @param {boolean} isDown */
export function vertical(places, from, isDown) {
  const { xs, ys } = places;
  let best = from;
  for (let at = 0; at < xs.length; at += 1) {
    if (isDown ? ys[at] <= ys[from] : ys[at] >= ys[from]) continue;
    const isNearer = Math.abs(ys[at] - ys[from]) - Math.abs(ys[best] - ys[from]);
    const isCloser = Math.abs(xs[at] - xs[from]) < Math.abs(xs[best] - xs[from]);
    if (best === from || isNearer < 0 || (isNearer === 0 && isCloser)) best = at;
  }
  return best;
}
