// @ts-check
// The marks of one grid, each drawn once: ten thousand cells are copies of a few small pictures.
import { colourOf, drawMark, hatch } from "./marks.js";

const FADED = 0.22;
const LOUD = new Set(["hung", "failed"]);
const VARIANTS = 4; // plain, faded, stale, stale and faded
/** @typedef {[word: string, tone: string, mark: string, isQuiet: number]} Class see colouring.py */

/** @param {number} picture */
export function classOf(picture) {
  return Math.floor(picture / VARIANTS);
}

/** Whether a picture is of a class that one looks for, neither faded nor stale. @param {number} picture @param {Class[]} classes */
export function isLoud(picture, classes) {
  const mark = classes[classOf(picture)]?.[2] ?? "";
  return picture % VARIANTS === 0 && LOUD.has(mark);
}

/** A cell's picture: its class, and whether it is stale or faded. */
export function pictureOf(/** @type {number} */ at, /** @type {number} */ stale, /** @type {number} */ faded) {
  return at * VARIANTS + stale * 2 + faded;
}

export class Sprites {
  /** @param {Class[]} classes @param {number} side @param {number} scale device pixels for one of the page */
  constructor(classes, side, scale) {
    this.side = side;
    this.pixels = Math.max(1, Math.round(side * scale));
    this.sheet = document.createElement("canvas");
    this.sheet.width = this.pixels * VARIANTS;
    this.sheet.height = this.pixels * Math.max(1, classes.length);
    const context = this.sheet.getContext("2d", { willReadFrequently: true });
    if (context) this.#draw(context, classes);
    const image = context?.getImageData(0, 0, this.sheet.width, this.sheet.height);
    /** @type {Uint32Array} the sheet, one number for each pixel */
    this.colours = new Uint32Array(image?.data.buffer ?? 0);
  }

  /** @param {CanvasRenderingContext2D} context @param {Class[]} classes */
  #draw(context, classes) {
    const style = getComputedStyle(document.documentElement);
    const ground = style.getPropertyValue("--ground").trim();
    classes.forEach(([, tone, mark, isQuiet], row) => {
      const colour = colourOf(style, tone);
      for (let variant = 0; variant < VARIANTS; variant += 1) {
        const [left, top] = [variant * this.pixels, row * this.pixels];
        context.globalAlpha = variant % 2 ? FADED : 1;
        drawMark(context, mark, colour, left, top, this.pixels, isQuiet === 1);
        context.globalAlpha = 1;
        if (variant >= 2) hatch(context, ground, left, top, this.pixels);
      }
    });
  }

  /**
   * Draws a picture larger than its cell, on a halo of the ground, so that one among thousands is seen.
   * @param {CanvasRenderingContext2D} context
   * @param {Class} picked
   * @param {number} x the middle of its cell, in device pixels
   * @param {number} y
   * @param {number} size
   */
  shout(context, [, tone, mark], x, y, size) {
    const style = getComputedStyle(document.documentElement);
    context.fillStyle = style.getPropertyValue("--ground").trim();
    context.beginPath();
    context.arc(x, y, size * 0.56, 0, Math.PI * 2);
    context.fill();
    drawMark(context, mark, colourOf(style, tone), x - size / 2, y - size / 2, size, false);
  }

  /**
   * Copies a picture into pixels that are not on the screen yet, over what is there: for ten thousand
   * of them a fifth of the time that `stamp` takes.
   * @param {Uint32Array} pixels of the whole canvas
   * @param {number} width of the canvas
   * @param {number} picture
   * @param {number} x
   * @param {number} y
   */
  copy(pixels, width, picture, x, y) {
    const { colours } = this;
    const stride = this.sheet.width;
    const across = Math.min(this.pixels, width - x);
    let from = Math.floor(picture / VARIANTS) * this.pixels * stride + (picture % VARIANTS) * this.pixels;
    let to = y * width + x;
    for (let row = 0; row < this.pixels; row += 1) {
      for (let step = 0; step < across; step += 1) pixels[to + step] = colours[from + step];
      from += stride;
      to += width;
    }
  }

  /**
   * Copies a picture to a place given in device pixels.
   * @param {CanvasRenderingContext2D} context
   * @param {number} picture
   * @param {number} x
   * @param {number} y
   */
  stamp(context, picture, x, y) {
    const size = this.pixels;
    const left = (picture % VARIANTS) * size;
    const top = Math.floor(picture / VARIANTS) * size;
    context.drawImage(this.sheet, left, top, size, size, x, y, size, size);
  }
}
