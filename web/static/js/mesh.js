// @ts-check
// The mesh of a job as small matrices: two of its dimensions as rows and columns, a third as one
// matrix beside the other where there is room, and one place chosen in every further dimension.
import { blank } from "./layout.js";

/**
 * @typedef {{name: string, size: number, stride: number}} Axis
 * @typedef {{rows: number, columns: number, beside: number, at: number[]}} View which dimensions are
 *   drawn (`beside` -1 for none), and the chosen place in each of the others
 */

const MOST_CELLS = 4096; // to draw all matrices at once
const MOST_MATRICES = 64;
const TITLE = 20;
const GAP = 20;
const LEFT = 44;
const FIRST_LABEL = 44;
const SIDES = [22, 18, 16, 14, 12, 10, 9, 8, 7];

/** Name of a dimension, also of one that has no groups. @param {Axis} axis */
export function nameOf(axis) {
  return axis.name || "others";
}

/** Place of a rank in each dimension. @param {Axis[]} axes @param {number} rank */
export function placeOf(axes, rank) {
  return axes.map((axis) => Math.floor(rank / axis.stride) % axis.size);
}

/** The longest dimensions are drawn, through this rank. @param {Axis[]} axes @param {number} rank @returns {View} */
export function firstView(axes, rank) {
  const longest = axes.map((_, at) => at).sort((a, b) => axes[b].size - axes[a].size || a - b);
  const [columns, rows] = longest;
  return withBeside(axes, { rows, columns, beside: -1, at: placeOf(axes, rank) });
}

/** The view with a third dimension side by side, if all of it has room. @param {Axis[]} axes @param {View} view */
export function withBeside(axes, view) {
  const others = axes.map((_, at) => at).filter((at) => at !== view.rows && at !== view.columns);
  const cells = axes[view.rows].size * axes[view.columns].size;
  const fits = others.find((at) => axes[at].size <= MOST_MATRICES && axes[at].size * cells <= MOST_CELLS);
  return { ...view, beside: fits ?? -1 };
}

/** @param {View} view as in the address: rows, columns, and the places */
export function written(view) {
  return [view.rows, view.columns, ...view.at].join(".");
}

/** A view out of the address; null where it does not fit this mesh. @param {Axis[]} axes @param {string} text */
export function readView(axes, text) {
  const [rows, columns, ...at] = text.split(".").map(Number);
  const isWhole = at.length === axes.length && at.every((place, index) => place >= 0 && place < axes[index].size);
  if (!isWhole || !(rows in axes) || !(columns in axes) || rows === columns) return null;
  return withBeside(axes, { rows, columns, beside: -1, at });
}

/**
 * @param {Axis[]} axes
 * @param {View} view
 * @param {Map<number, number>} index rank to cell
 * @param {number} width
 * @returns {import("./layout.js").Layout}
 */
export function meshLayout(axes, view, index, width) {
  const [down, across] = [axes[view.rows], axes[view.columns]];
  const places = view.beside < 0 ? [view.at[view.beside]] : Array.from({ length: axes[view.beside].size }, (_, at) => at);
  const side = SIDES.find((one) => LEFT + across.size * one <= width) ?? SIDES[SIDES.length - 1];
  const box = { x: LEFT + across.size * side + GAP, y: TITLE + TITLE + down.size * side + GAP };
  const columns = Math.max(1, Math.floor((width + GAP) / box.x));
  const lines = Math.ceil(places.length / columns);
  const full = Math.max(width, Math.min(columns, places.length) * box.x - GAP);
  const made = blank(places.length * down.size * across.size, side, full, lines * box.y - GAP);
  let count = 0;
  places.forEach((place, at) => {
    const origin = { x: (at % columns) * box.x, y: Math.floor(at / columns) * box.y };
    label(made, axes, view, origin, place);
    for (let row = 0; row < down.size; row += 1) {
      for (let column = 0; column < across.size; column += 1) {
        const cell = index.get(rankAt(axes, view, place, row, column));
        if (cell === undefined) continue;
        made.cells[count] = cell;
        made.xs[count] = origin.x + LEFT + column * side;
        made.ys[count] = origin.y + 2 * TITLE + row * side;
        count += 1;
      }
    }
  });
  return { ...made, cells: made.cells.subarray(0, count), xs: made.xs.subarray(0, count), ys: made.ys.subarray(0, count) };
}

/** @param {Axis[]} axes @param {View} view @param {number} beside @param {number} row @param {number} column */
function rankAt(axes, view, beside, row, column) {
  const at = [...view.at];
  if (view.beside >= 0) at[view.beside] = beside;
  at[view.rows] = row;
  at[view.columns] = column;
  return at.reduce((rank, place, index) => rank + place * axes[index].stride, 0);
}

/** @param {import("./layout.js").Layout} made @param {Axis[]} axes @param {View} view @param {{x: number, y: number}} origin @param {number} place */
function label(made, axes, view, origin, place) {
  const [down, across] = [axes[view.rows], axes[view.columns]];
  const left = origin.x + LEFT;
  if (view.beside >= 0) {
    made.labels.push({ text: `${nameOf(axes[view.beside])} ${place}`, x: left, y: origin.y + 14, width: 160 });
  }
  const stepAcross = Math.max(1, Math.ceil(32 / made.side));
  const stepDown = Math.max(1, Math.ceil(16 / made.side));
  made.labels.push({ text: nameOf(down), x: origin.x, y: origin.y + TITLE + 14, width: LEFT - 8 });
  made.labels.push({ text: nameOf(across), x: left + 2, y: origin.y + TITLE + 14, width: FIRST_LABEL });
  for (let at = stepAcross; at < across.size; at += stepAcross) {
    if (at * made.side < FIRST_LABEL) continue;
    const x = left + (at + 0.5) * made.side;
    made.labels.push({ text: String(at), x, y: origin.y + TITLE + 14, width: 48, align: "center" });
  }
  for (let at = 0; at < down.size; at += stepDown) {
    const y = origin.y + 2 * TITLE + at * made.side + made.side / 2 + 4;
    made.labels.push({ text: String(at), x: left - 8, y, width: 32, align: "right" });
  }
}
