// @ts-check
// Draws the marks of ranks. Each class of ranks has its own shape, so that colour is never alone.
// The shapes and their names are those of macros.html.

const TAU = Math.PI * 2;
const TONES = {
  hung: "--hung",
  suspected: "--suspected",
  slow: "--slow",
  expected_wait: "--rank-waiting",
  healthy: "--rank-healthy",
  unknown: "--unknown",
  finished: "--finished",
  failed: "--failed",
  accent: "--accent",
  faint: "--rule-strong",
};

/** @typedef {(context: CanvasRenderingContext2D, x: number, y: number, radius: number) => void} Shape */

/**
 * @param {CSSStyleDeclaration} style of the page, which knows the theme
 * @param {string} tone
 */
export function colourOf(style, tone) {
  const name = TONES[/** @type {keyof typeof TONES} */ (tone)] ?? "--unknown";
  return style.getPropertyValue(name).trim();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} mark
 * @param {string} colour
 * @param {number} left
 * @param {number} top
 * @param {number} side of the cell with its gap
 * @param {boolean} isQuiet drawn small
 */
export function drawMark(context, mark, colour, left, top, side, isQuiet) {
  const radius = side * (isQuiet ? 0.16 : side < 9 ? 0.4 : 0.34);
  context.save();
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1.25, side * 0.08);
  context.beginPath();
  (SHAPES[/** @type {keyof typeof SHAPES} */ (mark)] ?? dashed)(context, left + side / 2, top + side / 2, radius);
  context.restore();
}

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
function diamond(context, x, y, radius) {
  const reach = radius * 1.25;
  context.moveTo(x, y - reach);
  context.lineTo(x + reach, y);
  context.lineTo(x, y + reach);
  context.lineTo(x - reach, y);
  context.closePath();
  context.fill();
}

/** @type {Shape} */
function half(context, x, y, radius) {
  context.arc(x, y, radius * 0.92, 0, TAU);
  context.stroke();
  context.beginPath();
  context.arc(x, y, radius * 0.92, TAU / 4, (3 * TAU) / 4);
  context.fill();
}

/** @type {Shape} */
function ring(context, x, y, radius) {
  context.arc(x, y, radius * 0.9, 0, TAU);
  context.stroke();
}

/** @type {Shape} */
function dashed(context, x, y, radius) {
  context.setLineDash([radius * 0.55, radius * 0.4]);
  ring(context, x, y, radius);
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

const SHAPES = {
  healthy: dot,
  expected_wait: square,
  hung: triangle,
  suspected: diamond,
  slow: half,
  starting: ring,
  unknown: dashed,
  failed: cross,
  finished: tick,
};

/**
 * Strikes a cell through in the colour of the ground: what it says is old.
 * @param {CanvasRenderingContext2D} context
 * @param {string} ground
 * @param {number} left
 * @param {number} top
 * @param {number} side
 */
export function hatch(context, ground, left, top, side) {
  context.save();
  context.strokeStyle = ground;
  context.lineWidth = Math.max(1, side * 0.09);
  context.beginPath();
  context.rect(left, top, side, side);
  context.clip();
  for (let step = side * 0.3; step < side * 2; step += Math.max(2.5, side * 0.2)) {
    context.moveTo(left, top + step);
    context.lineTo(left + step, top);
  }
  context.stroke();
  context.restore();
}
