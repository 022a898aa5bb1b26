// @ts-check
// The ranks of a job as the grid draws them: numbers in typed arrays, kept up to date by what the
// server sends (see rank_grid.py). Nothing here knows of the screen.
import { pictureOf } from "./sprites.js";

/**
 * @typedef {[number | null, number][]} Counts runs of numbers in step: the first, and how many
 * @typedef {[number, number][]} Runs a number, and for how many ranks
 * @typedef {{nodes: {name: string, ranks: Counts}[], pids: Counts}} Places
 * @typedef {{states: [string, number][], texts: string[], doing: Runs, ages: Runs, chosen?: Runs,
 *   colours?: {classes: import("./sprites.js").Class[], of: Runs},
 *   lags?: [number | null, number | null, number][]}} Looks
 */

const NONE = -1;
const STATES = "cgsuwhf";
/** @type {import("./sprites.js").Class[]} */
const STATE_CLASSES = [
  ["culprit", "hung", "hung", 0],
  ["gone", "failed", "failed", 0],
  ["silent", "unknown", "unknown", 0],
  ["unknown", "unknown", "unknown", 0],
  ["waiting", "expected_wait", "expected_wait", 0],
  ["healthy", "healthy", "healthy", 0],
  ["finished", "finished", "finished", 0],
];
// As colouring.AGES_S; the last is for a rank that was never heard.
const AGES = [
  "heard now", "heard 3 s ago", "heard 5 s ago", "heard 10 s ago", "heard 20 s ago", "heard 30 s ago",
  "heard 1 min ago", "heard 2 min ago", "heard 5 min ago", "heard 10 min ago", "heard 30 min ago",
  "heard over 1 h ago", "never heard",
]; // prettier-ignore

/** @param {Counts} runs @param {number} count */
function counted(runs, count) {
  const numbers = new Int32Array(count);
  let at = 0;
  for (const [first, length] of runs) {
    for (let step = 0; step < length; step += 1) numbers[at + step] = first === null ? NONE : first + step;
    at += length;
  }
  return numbers;
}

/** @template {Uint8Array | Uint16Array | Uint32Array} T @param {Runs} runs @param {T} into @returns {T} */
function unrolled(runs, into) {
  let at = 0;
  for (const [value, length] of runs) {
    for (const end = at + length; at < end; at += 1) into[at] = value;
  }
  return into;
}

export class Ranks {
  count = 0;
  /** @type {{name: string, start: number, count: number}[]} */
  nodes = [];
  ranks = new Int32Array(0);
  pids = new Int32Array(0);
  /** @type {Map<number, number>} rank to its index here */
  index = new Map();
  /** @type {import("./sprites.js").Class[]} */
  classes = STATE_CLASSES;
  states = new Uint8Array(0);
  pictures = new Uint8Array(0);
  /** @type {Looks | null} */
  #looks = null;
  #nodeOf = new Uint16Array(0);
  #doing = new Uint32Array(0);
  #ages = new Uint8Array(0);
  #stale = new Uint8Array(0);
  #lags = new Int32Array(0);
  #seqs = new Int32Array(0);

  /** @param {Places} places */
  place(places) {
    const sizes = places.nodes.map((node) => node.ranks.reduce((sum, [, length]) => sum + length, 0));
    this.count = sizes.reduce((sum, size) => sum + size, 0);
    this.ranks = counted(places.nodes.flatMap((node) => node.ranks), this.count);
    this.pids = counted(places.pids, this.count);
    this.index = new Map();
    for (let at = 0; at < this.count; at += 1) this.index.set(this.ranks[at], at);
    this.#nodeOf = unrolled(sizes.map((size, at) => [at, size]), new Uint16Array(this.count));
    let start = 0;
    this.nodes = places.nodes.map((node, at) => {
      const placed = { name: node.name, start, count: sizes[at] };
      start += sizes[at];
      return placed;
    });
    this.pictures = new Uint8Array(0);
  }

  /** Take in how the ranks look now. @param {Looks} looks @returns {Int32Array | null} which changed; null for all */
  look(looks) {
    const count = this.count;
    const isRepainted = JSON.stringify(looks.colours?.classes) !== JSON.stringify(this.#looks?.colours?.classes);
    this.#looks = looks;
    this.states = new Uint8Array(count);
    this.#stale = new Uint8Array(count);
    let at = 0;
    for (const [letter, length] of looks.states) {
      const small = letter.toLowerCase();
      this.states.fill(STATES.indexOf(small), at, at + length);
      this.#stale.fill(letter === small ? 0 : 1, at, at + length);
      at += length;
    }
    this.#doing = unrolled(looks.doing, new Uint32Array(count));
    this.#ages = unrolled(looks.ages, new Uint8Array(count));
    this.classes = looks.colours?.classes ?? STATE_CLASSES;
    this.#takeLags(looks.lags);
    return this.#paint(looks, isRepainted);
  }

  /** @param {Looks["lags"]} lags */
  #takeLags(lags) {
    this.#lags = new Int32Array(lags ? this.count : 0);
    this.#seqs = new Int32Array(lags ? this.count : 0);
    let at = 0;
    for (const [lag, seq, length] of lags ?? []) {
      this.#lags.fill(lag ?? NONE, at, at + length);
      this.#seqs.fill(seq ?? NONE, at, at + length);
      at += length;
    }
  }

  /** @param {Looks} looks @param {boolean} isRepainted */
  #paint(looks, isRepainted) {
    const classOf = looks.colours ? unrolled(looks.colours.of, new Uint8Array(this.count)) : this.states;
    const chosen = looks.chosen ? unrolled(looks.chosen, new Uint8Array(this.count)) : null;
    const before = this.pictures;
    this.pictures = new Uint8Array(this.count);
    const changed = [];
    for (let at = 0; at < this.count; at += 1) {
      const isFaded = chosen !== null && chosen[at] === 0 ? 1 : 0;
      this.pictures[at] = pictureOf(classOf[at], this.#stale[at], isFaded);
      if (this.pictures[at] !== before[at]) changed.push(at);
    }
    return isRepainted || before.length !== this.count ? null : Int32Array.from(changed);
  }

  /** What is known of one rank, in lines: the first names it. @param {number} at @returns {string[]} */
  lines(at) {
    const state = STATE_CLASSES[this.states[at]]?.[0] ?? "unknown";
    const node = this.nodes[this.#nodeOf[at]]?.name;
    const pid = this.pids[at] === NONE ? "" : ` · pid ${this.pids[at]}`;
    const stale = this.#stale[at] ? ", not heard lately" : "";
    const doing = this.#looks?.texts[this.#doing[at]] ?? "";
    return [
      `rank ${this.ranks[at]} · ${state}${stale}`,
      `${node || "no node yet"}${pid}`,
      doing,
      this.#lagText(at),
      AGES[this.#ages[at]] ?? "",
    ].filter((line) => line !== "");
  }

  /** @param {number} at */
  #lagText(at) {
    if (this.#lags.length === 0 || this.#seqs[at] === NONE) return "";
    const lag = this.#lags[at];
    return lag > 0 ? `at #${this.#seqs[at]}, ${lag} behind the front` : `at the front, #${this.#seqs[at]}`;
  }

  /** Where walking begins: at a culprit if there is one. */
  firstOdd() {
    return Math.max(0, this.states.indexOf(0));
  }
}
