// @ts-check
// Where each rank of the grid has its place: one block for each node, blocks in even columns.

/**
 * @typedef {{x: number, y: number, size: number}} Spot
 * @typedef {{text: string, x: number, y: number, width: number}} Label
 * @typedef {{spots: Spot[], labels: Label[], height: number, at: (x: number, y: number) => number, vertical: (from: number, isDown: boolean) => number}} Layout
 */

const ROOMY = { label: 20, gap: 12, below: 12 };
const DENSE = { label: 16, gap: 8, below: 4 };
const MANY = 1024; // ranks; with more, the whole matters more than the single cell
const WIDEST_ROW = 16; // ranks of one node beyond this go to a second line

/** Side of a cell with its gap: large when there is room. @param {number} count */
function cellSide(count) {
  if (count <= 64) return 28;
  if (count <= MANY) return 18;
  return count <= 4 * MANY ? 11 : 9;
}

/** @param {{name: string, ranks: number[]}[]} nodes @param {number} width @returns {Layout} */
export function layout(nodes, width) {
  const count = nodes.reduce((sum, node) => sum + node.ranks.length, 0);
  const side = cellSide(count);
  const room = count <= MANY ? ROOMY : DENSE;
  const most = Math.max(1, ...nodes.map((node) => node.ranks.length));
  const across = Math.max(1, Math.min(most, WIDEST_ROW, Math.floor(width / side)));
  const blockWidth = Math.max(across * side, 88);
  const blockHeight = room.label + Math.ceil(most / across) * side + room.below;
  const columns = Math.max(1, Math.floor((width + room.gap) / (blockWidth + room.gap)));
  /** @type {Spot[]} */
  const spots = [];
  /** @type {Label[]} */
  const labels = [];
  nodes.forEach((node, index) => {
    const left = (index % columns) * (blockWidth + room.gap);
    const top = Math.floor(index / columns) * blockHeight;
    labels.push({ text: node.name || "not reported", x: left + 2, y: top + 13, width: blockWidth });
    node.ranks.forEach((_, place) => {
      spots.push({
        x: left + (place % across) * side,
        y: top + room.label + Math.floor(place / across) * side,
        size: side,
      });
    });
  });
  const height = Math.max(1, Math.ceil(nodes.length / columns)) * blockHeight;
  return { spots, labels, height, at: finder(spots), vertical: walker(spots) };
}

/** @param {Spot[]} spots */
function finder(spots) {
  return (/** @type {number} */ x, /** @type {number} */ y) =>
    spots.findIndex((spot) => x >= spot.x && x < spot.x + spot.size && y >= spot.y && y < spot.y + spot.size);
}

/** The nearest spot on the next line, above or below. @param {Spot[]} spots */
function walker(spots) {
  return (/** @type {number} */ from, /** @type {boolean} */ isDown) => {
    const start = spots[from];
    if (!start) return from;
    const beyond = spots.filter((spot) => (isDown ? spot.y > start.y : spot.y < start.y));
    if (beyond.length === 0) return from;
    const line = isDown ? Math.min(...beyond.map((spot) => spot.y)) : Math.max(...beyond.map((spot) => spot.y));
    const best = beyond
      .filter((spot) => spot.y === line)
      .reduce((near, spot) => (Math.abs(spot.x - start.x) < Math.abs(near.x - start.x) ? spot : near));
    return spots.indexOf(best);
  };
}
