// @ts-check
// Holds a live page as it is, for as long as its reader wants. The stream goes on: what it brings
// waits, and is shown when the reader goes on.
import { clock } from "./times.js";

export function isPaused() {
  return document.documentElement.dataset.paused === "1";
}

/** @returns {boolean} whether this page has anything to hold */
export function togglePause() {
  if (!document.getElementById("live")) return false;
  const now = !isPaused();
  document.documentElement.dataset.paused = now ? "1" : "0";
  const since = document.getElementById("paused-since");
  if (since && now) since.textContent = clock(new Date());
  document.getElementById("paused-banner")?.toggleAttribute("hidden", !now);
  showButton();
  document.dispatchEvent(new Event("hangwatch:paused"));
  return true;
}

function showButton() {
  const button = document.querySelector('.top [data-action="pause"]');
  button?.toggleAttribute("hidden", !document.getElementById("live"));
  button?.setAttribute("aria-pressed", String(isPaused()));
}

export function startPause() {
  showButton();
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest('[data-action="pause"]')) togglePause();
  });
}
