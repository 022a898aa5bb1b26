// @ts-check
// Watches the page's event stream: holds updates back while the reader points at something or types,
// and says so when the stream is down. The swaps themselves are htmx's (hx-sse).
import { hold, settle, startAnchor } from "./anchor.js";
import { isPaused } from "./pause.js";
import { merged } from "./pieces.js";
import { clock } from "./times.js";

const QUIET_LIMIT_MS = 15_000; // the server sends at least a beat every 5 s
const HOLD_MS = 4_000; // a pointer that rests for longer holds nothing back, and is kept in place
const HELD_LONG_MS = 10_000; // beyond it the reader is told that the page is old
const AGAIN_MS = 5_000;
const NOTHING = "nothing"; // is missing: see live.py
const TYPED = 'input:not([type="checkbox"]), select, textarea';
const HELD = "table, .stacks, canvas, .culprit, .command, .panel, [data-hold]";

let lastHeardMs = performance.now();
let lastHeardAt = new Date();
let lastMovedMs = -Infinity;
let isOver = false;
/** @type {{x: number, y: number} | null} */
let lastPlace = null;
let isDown = false;
/** @type {string | null} */
let waiting = null;
let waitingSinceMs = 0;
let waitingSinceAt = new Date();

function banner() {
  return document.getElementById("stream-banner");
}

/** @param {boolean} down */
function show(down) {
  if (down === isDown) return;
  isDown = down;
  const since = document.getElementById("stream-since");
  if (since) since.textContent = clock(lastHeardAt);
  banner()?.toggleAttribute("hidden", !down);
}

function heard() {
  lastHeardMs = performance.now();
  lastHeardAt = new Date();
  show(false);
}

/** What the server answered instead of a stream. @param {number | undefined} status */
function refused(status) {
  show(true);
  // The session is over, or may no longer read: the page itself leads to the login, or says so.
  if (status === 401 || status === 403) location.reload();
}

/** htmx tries a broken stream again by itself, but not one that never began. @param {any} event */
function notBegun(event) {
  const { ctx } = event.detail;
  const live = document.getElementById("live");
  if (ctx?.sourceElement !== live || !live) return;
  if (ctx.response?.headers.get("content-type")?.startsWith("text/event-stream")) return;
  event.preventDefault(); // or htmx would show the answer in place of the page
  refused(ctx.response?.status);
  // @ts-ignore: htmx is a plain script without types here
  setTimeout(() => void htmx.ajax("GET", live.getAttribute("hx-sse:connect"), { source: live }), AGAIN_MS);
}

/** Say that what came is held back, once that has lasted. */
function showHeld() {
  const isLong = waiting !== null && !isPaused() && performance.now() - waitingSinceMs > HELD_LONG_MS;
  const since = document.getElementById("held-since");
  if (since && isLong) since.textContent = clock(waitingSinceAt);
  document.getElementById("held-banner")?.toggleAttribute("hidden", !isLong);
}

/** What the server cannot see now. @param {string} text */
function showMissing(text) {
  const shown = document.getElementById("missing-banner");
  if (!shown) return;
  shown.textContent = text === NOTHING ? "" : text;
  shown.toggleAttribute("hidden", text === NOTHING);
}

/** Whether the reader is at something that must not move now. */
function isHeld() {
  if (isPaused()) return true;
  const active = document.activeElement;
  const live = document.getElementById("live");
  if (active instanceof HTMLElement && active.matches(TYPED) && live?.contains(active)) return true;
  const selection = getSelection();
  if (selection && !selection.isCollapsed) return true;
  if (document.querySelector("#live details.drop[open]")) return true;
  return isOver && performance.now() - lastMovedMs < HOLD_MS;
}

function release() {
  const live = document.getElementById("live");
  if (waiting === null || isHeld() || !live) return;
  const text = waiting;
  waiting = null;
  hold();
  // @ts-ignore: htmx is a plain script without types here
  void htmx.swap({ text, target: live, swap: "innerMorph", sourceElement: live }).then(shown);
}

function shown() {
  settle();
  document.dispatchEvent(new Event("hangwatch:shown"));
}

/** @param {any} event htmx's own event */
function beforeMessage(event) {
  heard();
  const { message } = event.detail;
  if (message.event === "missing") showMissing(message.data);
  if (message.event) return;
  if (waiting === null) [waitingSinceMs, waitingSinceAt] = [performance.now(), new Date()];
  message.data = merged(waiting, message.data);
  waiting = null;
  if (!isHeld()) {
    hold();
    return;
  }
  waiting = message.data;
  event.detail.cancelled = true;
}

export function startLive() {
  if (!document.getElementById("live")) return;
  startAnchor();
  document.addEventListener("htmx:sse:before:message", beforeMessage);
  document.addEventListener("htmx:sse:after:message", shown);
  document.addEventListener("htmx:sse:after:connection", heard);
  document.addEventListener("htmx:sse:error", (event) => refused(/** @type {CustomEvent} */ (event).detail.status));
  document.addEventListener("htmx:before:response", notBegun);
  document.addEventListener("htmx:error", notBegun);
  document.addEventListener("gone", () => location.reload());
  document.addEventListener("pointermove", (event) => {
    // Browsers also send this event for a pointer that rests: when a page appears or moves under it.
    const isMoved = lastPlace !== null && (lastPlace.x !== event.clientX || lastPlace.y !== event.clientY);
    lastPlace = { x: event.clientX, y: event.clientY };
    if (isMoved) lastMovedMs = performance.now();
    isOver = event.pointerType === "mouse" && event.target instanceof Element && event.target.closest(HELD) !== null;
  });
  document.addEventListener("hangwatch:paused", release);
  setInterval(() => {
    release();
    showHeld();
    if (performance.now() - lastHeardMs > QUIET_LIMIT_MS) show(true);
  }, 500);
}
