// @ts-check
// One canvas of ranks: draws marks at the places of a layout, only those that changed, and leads
// pointer and keys from rank to rank. What the marks mean is not known here.
import { under, vertical } from "./layout.js";
import { Sprites, classOf, isLoud } from "./sprites.js";

const DIGITS_MS = 1000; // digits typed within this time are one rank's number
const SMALL = 14; // cells below this size let the few that one looks for stand out
const MOST_LOUD = 64; // more than these need no help to be seen
const LOUD_SIZE = 20;
/** @typedef {{open: (cell: number, isAdded: boolean) => void, lines: (cell: number) => string[]}} Wishes */

/** @type {(() => void)[]} drawings of whole canvases, one for each frame: two would hold it up */
const drawings = [];

/** @param {() => void} draw */
function inOwnFrame(draw) {
  drawings.push(draw);
  if (drawings.length === 1) requestAnimationFrame(drawNext);
}

function drawNext() {
  const draw = drawings.shift();
  if (drawings.length > 0) requestAnimationFrame(drawNext);
  draw?.();
}

export class CanvasGrid {
  /** @type {import("./layout.js").Layout | null} */
  #places = null;
  /** @type {Sprites | null} */
  #sprites = null;
  #scale = 1;
  #chosen = -1; // a place of the layout
  #hovered = -1;
  /** @type {number[]} places whose marks are drawn larger than their cells */
  #loud = [];
  #isOwed = false; // a whole drawing, at the next frame
  #digits = "";
  #digitsMs = 0;
  /** @type {Int32Array} place of each cell, -1 for none */
  #placeOf = new Int32Array(0);

  /**
   * @param {HTMLElement} root with a canvas, a .tip, a .grid-ring and a reading
   * @param {import("./ranks.js").Ranks} ranks
   * @param {Wishes} wishes
   */
  constructor(root, ranks, wishes) {
    this.root = root;
    this.ranks = ranks;
    this.wishes = wishes;
    this.canvas = /** @type {HTMLCanvasElement} */ (root.querySelector("canvas"));
    this.tip = /** @type {HTMLElement} */ (root.querySelector(".tip"));
    this.ring = /** @type {HTMLElement} */ (root.querySelector(".grid-ring"));
    this.reading = /** @type {HTMLElement} */ (root.querySelector("[aria-live]"));
    this.#listen();
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("keydown", (event) => this.#onKey(event));
    canvas.addEventListener("focus", () => this.#choose(this.#chosen < 0 ? this.#start() : this.#chosen));
    canvas.addEventListener("blur", () => this.#point(-1));
    canvas.addEventListener("pointermove", (event) => this.#hover(this.#under(event)));
    canvas.addEventListener("pointerleave", () => this.#hover(-1));
    canvas.addEventListener("click", (event) => {
      const at = this.#under(event);
      if (at >= 0 && this.#places) this.wishes.open(this.#places.cells[at], event.shiftKey);
    });
  }

  /** Use these places from now on. @param {import("./layout.js").Layout} places */
  lay(places) {
    const held = this.#places?.cells[this.#chosen];
    this.#places = places;
    this.#placeOf = new Int32Array(this.ranks.count).fill(-1);
    for (let at = 0; at < places.cells.length; at += 1) this.#placeOf[places.cells[at]] = at;
    this.#chosen = held === undefined ? -1 : (this.#placeOf[held] ?? -1);
    this.#scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(places.width * this.#scale);
    this.canvas.height = Math.round(places.height * this.#scale);
    this.canvas.style.width = `${places.width}px`;
    this.canvas.style.height = `${places.height}px`;
    this.repaint();
  }

  /** Draw all anew, with new marks: other classes, another theme, other places. */
  repaint() {
    this.#sprites = null;
    if (this.#isOwed) return;
    this.#isOwed = true;
    inOwnFrame(() => {
      this.#isOwed = false;
      this.#drawAll();
    });
  }

  /** Draw these cells anew. @param {Int32Array} cells */
  redraw(cells) {
    const context = this.canvas.getContext("2d");
    if (this.#isOwed || !context || !this.#places || this.root.dataset.drawn === undefined) return;
    const loud = cells.length > 0 ? this.#findLoud() : this.#loud;
    // One that comes or goes covers or uncovers its neighbours: then all is drawn anew.
    if (String(loud) !== String(this.#loud)) return this.repaint();
    for (const cell of cells) {
      const at = this.#placeOf[cell];
      if (at >= 0) this.#stamp(context, at);
    }
    // They reach over their neighbours, so they are drawn last.
    if (cells.length > 0) for (const at of loud) this.#shout(context, this.#places, at);
    if (this.canvas === document.activeElement && this.#chosen >= 0) this.#point(this.#chosen);
  }

  #drawAll() {
    const context = this.canvas.getContext("2d");
    const places = this.#places;
    if (!context || !places) return;
    this.#sprites = new Sprites(this.ranks.classes, places.side, this.#scale);
    context.putImageData(this.#pictured(context, places, this.#sprites), 0, 0);
    this.#drawLabels(context, places);
    this.#loud = this.#findLoud();
    for (const at of this.#loud) this.#shout(context, places, at);
    this.root.dataset.drawn = String(places.cells.length);
  }

  /** All marks on a clear ground. @param {CanvasRenderingContext2D} context @param {import("./layout.js").Layout} places @param {Sprites} sprites */
  #pictured(context, { cells, xs, ys }, sprites) {
    const { width, height } = this.canvas;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const { pictures } = this.ranks;
    for (let at = 0; at < cells.length; at += 1) {
      sprites.copy(pixels, width, pictures[cells[at]], Math.round(xs[at] * this.#scale), Math.round(ys[at] * this.#scale));
    }
    return image;
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./layout.js").Layout} places */
  #drawLabels(context, places) {
    const style = getComputedStyle(document.documentElement);
    context.save();
    context.scale(this.#scale, this.#scale);
    context.font = `12px ${style.getPropertyValue("--font")}`;
    context.fillStyle = style.getPropertyValue("--muted");
    for (const label of places.labels) {
      context.textAlign = label.align ?? "left";
      context.fillText(cut(context, label.text, label.width), label.x, label.y);
    }
    context.restore();
  }

  /** Places of the few that one looks for, in a grid whose cells are small. */
  #findLoud() {
    const places = this.#places;
    if (!places || places.side >= SMALL) return [];
    const { pictures, classes } = this.ranks;
    /** @type {number[]} */
    const found = [];
    for (let at = 0; at < places.cells.length && found.length <= MOST_LOUD; at += 1) {
      if (isLoud(pictures[places.cells[at]], classes)) found.push(at);
    }
    return found.length <= MOST_LOUD ? found : [];
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./layout.js").Layout} places @param {number} at */
  #shout(context, places, at) {
    const picked = this.ranks.classes[classOf(this.ranks.pictures[places.cells[at]])];
    const middle = (/** @type {number} */ start) => (start + places.side / 2) * this.#scale;
    this.#sprites?.shout(context, picked, middle(places.xs[at]), middle(places.ys[at]), LOUD_SIZE * this.#scale);
  }

  /** Draw one mark over another. @param {CanvasRenderingContext2D} context @param {number} at */
  #stamp(context, at) {
    const places = this.#places;
    const sprites = this.#sprites;
    if (!places || !sprites) return;
    const x = Math.round(places.xs[at] * this.#scale);
    const y = Math.round(places.ys[at] * this.#scale);
    context.clearRect(x, y, sprites.pixels, sprites.pixels);
    sprites.stamp(context, this.ranks.pictures[places.cells[at]], x, y);
  }

  /** @param {MouseEvent} event */
  #under(event) {
    return this.#places ? under(this.#places, event.offsetX, event.offsetY) : -1;
  }

  /** @param {number} at */
  #hover(at) {
    if (at === this.#hovered) return;
    this.#hovered = at;
    this.#point(at);
  }

  /** Ring a place and say what is there; -1 for neither. @param {number} at */
  #point(at) {
    const places = this.#places;
    const isNone = at < 0 || !places || at >= places.cells.length;
    this.tip.hidden = isNone;
    this.ring.hidden = isNone;
    if (isNone || !places) return;
    const [first, ...rest] = this.wishes.lines(places.cells[at]);
    const title = document.createElement("strong");
    title.textContent = first;
    const spans = rest.map((text) => Object.assign(document.createElement("span"), { textContent: text }));
    this.tip.replaceChildren(title, ...spans);
    const [x, y, side] = [places.xs[at], places.ys[at], places.side];
    const room = this.root.clientWidth - this.tip.offsetWidth - 4;
    const grow = Math.max(0, 12 - side) / 2;
    this.tip.style.left = `${Math.max(0, Math.min(x - this.root.scrollLeft, room))}px`;
    this.tip.style.top = `${y + side + 8}px`;
    this.ring.style.transform = `translate(${x - grow}px, ${y - grow}px)`;
    this.ring.style.width = `${side + 2 * grow}px`;
    this.ring.style.height = `${side + 2 * grow}px`;
  }

  /** @param {number} at */
  #choose(at) {
    const places = this.#places;
    if (!places || places.cells.length === 0) return;
    this.#chosen = Math.max(0, Math.min(places.cells.length - 1, at));
    this.#point(this.#chosen);
    this.reading.textContent = this.wishes.lines(places.cells[this.#chosen]).join(", ").replaceAll(" · ", ", ");
  }

  /** Where walking begins. */
  #start() {
    return Math.max(0, this.#placeOf[this.ranks.firstOdd()] ?? 0);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const places = this.#places;
    if (!places || event.ctrlKey || event.altKey || event.metaKey) return;
    const from = this.#chosen < 0 ? this.#start() : this.#chosen;
    const steps = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: places.cells.length - 1 };
    if (event.key in steps) this.#choose(steps[/** @type {keyof typeof steps} */ (event.key)]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.#choose(vertical(places, from, event.key === "ArrowDown"));
    else if (event.key === "Enter") this.wishes.open(places.cells[from], event.shiftKey);
    else if (event.key === "Escape") this.#point(-1);
    else if (/^\d$/.test(event.key)) this.#typed(event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Go to the rank whose number is typed. @param {string} digit */
  #typed(digit) {
    const nowMs = performance.now();
    this.#digits = nowMs - this.#digitsMs < DIGITS_MS ? this.#digits + digit : digit;
    this.#digitsMs = nowMs;
    const at = this.#placeOf[this.ranks.index.get(Number(this.#digits)) ?? -1] ?? -1;
    if (at >= 0) this.#choose(at);
  }
}

/** As much of a text as there is room for. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = text;
  while (kept.length > 1 && context.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}
