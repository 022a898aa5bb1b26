// @ts-check
// Draws one cell of the rank grid. Each state has its own shape, so that colour is never alone.

const TAU = Math.PI * 2;
const COLOURS = {
  h: "--rank-healthy",
  w: "--rank-waiting",
  c: "--hung",
  s: "--unknown",
  g: "--failed",
  u: "--unknown",
  f: "--finished",
};

/**
 * @param {CanvasRenderingContext2D} context
 * @param {CSSStyleDeclaration} style
 * @param {string} state one letter, see rank_grid.py
 * @param {number} left
 * @param {number} top
 * @param {number} side of the cell with its gap
 */
export function drawCell(context, style, state, left, top, side) {
  const name = COLOURS[/** @type {keyof typeof COLOURS} */ (state)] ?? "--unknown";
  const colour = style.getPropertyValue(name).trim();
  const x = left + side / 2;
  const y = top + side / 2;
  const radius = side * 0.34;
  context.save();
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1.25, side * 0.08);
  context.beginPath();
  (SHAPES[/** @type {keyof typeof SHAPES} */ (state)] ?? ring)(context, x, y, radius);
  context.restore();
}

/** @typedef {(context: CanvasRenderingContext2D, x: number, y: number, radius: number) => void} Shape */

/** @type {Shape} */
function dot(context, x, y, radius) {
  context.arc(x, y, radius, 0, TAU);
  context.fill();
}

/** @type {Shape} */
function square(context, x, y, radius) {
  const half = radius * 0.9;
  context.roundRect(x - half, y - half, half * 2, half * 2, radius * 0.25);
  context.fill();
}

/** @type {Shape} */
function triangle(context, x, y, radius) {
  const reach = radius * 1.2;
  context.moveTo(x, y - reach);
  context.lineTo(x + reach * 1.05, y + reach * 0.85);
  context.lineTo(x - reach * 1.05, y + reach * 0.85);
  context.closePath();
  context.fill();
}

/** @type {Shape} */
function ring(context, x, y, radius) {
  context.setLineDash([radius * 0.55, radius * 0.4]);
  context.arc(x, y, radius * 0.92, 0, TAU);
  context.stroke();
}

/** @type {Shape} */
function cross(context, x, y, radius) {
  const reach = radius * 0.8;
  context.lineWidth *= 1.3;
  context.moveTo(x - reach, y - reach);
  context.lineTo(x + reach, y + reach);
  context.moveTo(x + reach, y - reach);
  context.lineTo(x - reach, y + reach);
  context.stroke();
}

/** @type {Shape} */
function tick(context, x, y, radius) {
  context.moveTo(x - radius * 0.8, y + radius * 0.1);
  context.lineTo(x - radius * 0.2, y + radius * 0.7);
  context.lineTo(x + radius * 0.85, y - radius * 0.65);
  context.stroke();
}

const SHAPES = { h: dot, w: square, c: triangle, s: ring, g: cross, u: ring, f: tick };

/**
 * Strikes a cell through in the colour of the ground: what it says is old.
 * @param {CanvasRenderingContext2D} context
 * @param {CSSStyleDeclaration} style
 * @param {number} left
 * @param {number} top
 * @param {number} side
 */
export function hatch(context, style, left, top, side) {
  context.save();
  context.strokeStyle = style.getPropertyValue("--ground").trim();
  context.lineWidth = Math.max(1, side * 0.07);
  context.beginPath();
  context.rect(left, top, side, side);
  context.clip();
  for (let step = side * 0.3; step < side * 2; step += Math.max(3, side * 0.2)) {
    context.moveTo(left, top + step);
    context.lineTo(left + step, top);
  }
  context.stroke();
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {CSSStyleDeclaration} style
 * @param {number} left
 * @param {number} top
 * @param {number} side
 */
export function outline(context, style, left, top, side) {
  context.strokeStyle = style.getPropertyValue("--accent").trim();
  context.lineWidth = 2;
  context.strokeRect(left + 1, top + 1, side - 2, side - 2);
}
