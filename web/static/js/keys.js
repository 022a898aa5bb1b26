// @ts-check
// Keyboard shortcuts. Silent while somebody types, and with Ctrl, Alt or Meta held.
import { showHelp, toggleUtc } from "./controls.js";
import { togglePause } from "./pause.js";

const PLACES = new Map([
  ["j", "/"],
  ["i", "/incidents"],
  ["n", "/nodes"],
  ["a", "/channels"],
  ["s", "/settings"],
]);
const CHORD_MS = 1200;
let chordUntilMs = 0;

/** @param {EventTarget | null} target */
function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Move to the next or previous row of the page's tables. @param {number} step */
function moveRow(step) {
  const rows = [...document.querySelectorAll("[data-rows] tbody tr")];
  const links = rows.map((row) => row.querySelector("a[href]")).filter((link) => link !== null);
  if (links.length === 0) return;
  const at = links.findIndex((link) => link === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
  const link = links[Math.min(links.length - 1, Math.max(0, next))];
  if (link instanceof HTMLElement) link.focus();
}

/** Open a menu of the incident and go to its first field; nothing is sent yet. @param {string} id */
function openMenu(id) {
  const menu = document.getElementById(id);
  if (!(menu instanceof HTMLDetailsElement)) return false;
  menu.open = true;
  const first = menu.querySelector("input:not([type=hidden]), form button");
  if (first instanceof HTMLElement) first.focus();
  return true;
}

/** @param {string} key @returns {boolean} whether the key meant something */
function act(key) {
  if (performance.now() < chordUntilMs) {
    chordUntilMs = 0;
    const place = PLACES.get(key);
    if (place) location.assign(place);
    return place !== undefined;
  }
  if (key === "g") chordUntilMs = performance.now() + CHORD_MS;
  else if (key === "/") document.getElementById("search")?.focus();
  else if (key === "j") moveRow(1);
  else if (key === "k") moveRow(-1);
  else if (key === "a") return openMenu("acknowledge");
  else if (key === "s") return openMenu("snooze");
  else if (key === "c") return openMenu("comment");
  else if (key === "u") toggleUtc();
  else if (key === "p") return togglePause();
  else if (key === "?") showHelp();
  else return false;
  return true;
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
    if (act(event.key)) event.preventDefault();
  });
}
