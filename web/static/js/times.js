// @ts-check
// Lets durations grow between two messages of the server, and shows wall times in the reader's zone.
// A duration grows from the moment it was received: the clocks of two machines are never compared.
import { isUtc } from "./controls.js";

/** @type {WeakMap<Element, {text: string, receivedMs: number}>} */
const received = new WeakMap();

/** Let a duration start anew from what was received for it now. @param {Element} element */
export function forget(element) {
  received.delete(element);
}

/** Same reading as the server's words.duration. @param {number} seconds */
export function duration(seconds) {
  const value = Math.max(0, seconds);
  if (value < 10) return `${value.toFixed(1)} s`;
  const whole = Math.floor(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 86400) {
    const minutes = Math.floor((whole % 3600) / 60);
    return `${Math.floor(whole / 3600)} h ${String(minutes).padStart(2, "0")} min`;
  }
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** @param {Date} date */
export function clock(date) {
  if (isUtc()) return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const pad = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return `${day} ${time} ${zone(date)}`;
}

/** @param {Date} date */
function zone(date) {
  const minutes = -date.getTimezoneOffset();
  const size = Math.abs(minutes);
  const hours = String(Math.floor(size / 60)).padStart(2, "0");
  return `${minutes < 0 ? "−" : "+"}${hours}:${String(size % 60).padStart(2, "0")}`;
}

/** @param {Element} element @param {string} text */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {number} nowMs */
function grow(element, nowMs) {
  const text = element.getAttribute("data-age") ?? "0";
  let seen = received.get(element);
  if (!seen || seen.text !== text) {
    seen = { text, receivedMs: nowMs };
    received.set(element, seen);
  }
  write(element, duration(Number(text) + (nowMs - seen.receivedMs) / 1000));
}

export function showTimes() {
  if (document.documentElement.dataset.paused === "1") return;
  const nowMs = performance.now();
  for (const element of document.querySelectorAll("[data-age]")) grow(element, nowMs);
  for (const element of document.querySelectorAll("time[data-clock], time[data-ago]")) {
    const date = new Date(element.getAttribute("datetime") ?? "");
    if (Number.isNaN(date.getTime())) continue;
    if (element.hasAttribute("data-clock")) write(element, clock(date));
    else element.setAttribute("title", clock(date));
  }
}

export function startTimes() {
  showTimes();
  setInterval(showTimes, 1000);
  document.addEventListener("hangwatch:utc", showTimes);
  document.addEventListener("hangwatch:shown", showTimes);
}
