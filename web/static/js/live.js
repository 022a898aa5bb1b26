// @ts-check
// Watches the page's event stream: holds updates back while the reader points at something or types,
// and says so when the stream is down. The swaps themselves are htmx's (hx-sse).
import { isPaused } from "./pause.js";
import { merged } from "./pieces.js";
import { clock } from "./times.js";

const QUIET_LIMIT_MS = 15_000; // the server sends at least a beat every 5 s
const HOLD_MS = 4_000; // a pointer that rests for longer holds nothing back
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
  // @ts-ignore: htmx is a plain script without types here
  void htmx.swap({ text, target: live, swap: "innerMorph", sourceElement: live }).then(shown);
}

function shown() {
  document.dispatchEvent(new Event("hangwatch:shown"));
}

/** @param {any} event htmx's own event */
function beforeMessage(event) {
  heard();
  const { message } = event.detail;
  if (message.event) return;
  message.data = merged(waiting, message.data);
  waiting = null;
  if (!isHeld()) return;
  waiting = message.data;
  event.detail.cancelled = true;
}

export function startLive() {
  if (!document.getElementById("live")) return;
  document.addEventListener("htmx:sse:before:message", beforeMessage);
  document.addEventListener("htmx:sse:after:message", shown);
  document.addEventListener("htmx:sse:after:connection", heard);
  document.addEventListener("htmx:sse:error", () => show(true));
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
    if (performance.now() - lastHeardMs > QUIET_LIMIT_MS) show(true);
  }, 500);
}
