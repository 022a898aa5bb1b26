// @ts-check
// The merged stack tree: search, hiding frames of the framework, folding, and links to a rank.
// Choices survive a live update, and the address keeps the one about frames.
import { startStackKeys } from "./stack_keys.js";
import { openMore } from "./stack_more.js";

let isSearching = "";
let current = -1;
/** @type {boolean | null} as the address or the server said until the reader chose */
let hidesFramework = null;

/** @returns {HTMLElement | null} */
function tree() {
  return document.querySelector("[data-stacks]");
}

/** @param {HTMLElement} root */
function hits(root) {
  return [...root.querySelectorAll(".frame.is-hit")].filter((hit) => hit instanceof HTMLElement);
}

/** Mark the frames that hold the text, open what is around them. @param {HTMLElement} root */
function search(root) {
  const wanted = isSearching.trim().toLowerCase();
  root.classList.toggle("is-searching", wanted !== "");
  for (const frame of root.querySelectorAll(".frame")) {
    const isHit = wanted !== "" && (frame.textContent ?? "").toLowerCase().includes(wanted);
    frame.classList.toggle("is-hit", isHit);
    if (isHit) openAround(frame);
  }
  show(root, wanted);
}

/** @param {HTMLElement} root @param {string} wanted */
function show(root, wanted) {
  const found = hits(root);
  current = Math.min(current, found.length - 1);
  found.forEach((hit, index) => hit.classList.toggle("is-current", index === current));
  const counter = root.querySelector("[data-stack-found]");
  const told = current >= 0 ? `${current + 1} of ${found.length}` : `${found.length} found`;
  if (counter) counter.textContent = wanted === "" ? "" : told;
  for (const button of root.querySelectorAll("[data-stack-step]")) {
    button.toggleAttribute("hidden", found.length === 0);
  }
  root.querySelector("[data-stack-all]")?.toggleAttribute("hidden", wanted === "");
}

/** Go to the next or previous match. @param {HTMLElement} root @param {number} by */
function step(root, by) {
  const found = hits(root);
  if (found.length === 0) return;
  current = current < 0 ? (by > 0 ? 0 : found.length - 1) : (current + by + found.length) % found.length;
  show(root, isSearching.trim());
  const hit = found[current];
  openAround(hit);
  hit.scrollIntoView({ block: "center" });
}

/** @param {Element} inside */
function openAround(inside) {
  let around = inside.closest("details");
  while (around) {
    around.open = true;
    around = around.parentElement?.closest("details") ?? null;
  }
}

/** @param {HTMLElement} root */
function fold(root) {
  const segments = [...root.querySelectorAll("details.segment")];
  const isFolded = segments.every((segment) => !segment.hasAttribute("open"));
  for (const segment of segments) segment.toggleAttribute("open", isFolded);
  showFold(root);
}

/** @param {HTMLElement} root */
function showFold(root) {
  const segments = [...root.querySelectorAll("details.segment")];
  const isFolded = segments.length > 0 && segments.every((segment) => !segment.hasAttribute("open"));
  const button = root.querySelector("[data-stack-fold]");
  if (button) button.textContent = isFolded ? "Unfold all" : "Fold all";
}

/** @param {HTMLElement} root @param {boolean} isHidden */
function showFramework(root, isHidden) {
  root.classList.toggle("hide-framework", isHidden);
  for (const run of root.querySelectorAll("details.run:not(.is-middle)")) run.toggleAttribute("open", !isHidden);
}

/** @param {HTMLElement} root @param {boolean} isHidden */
function hideFramework(root, isHidden) {
  hidesFramework = isHidden;
  showFramework(root, isHidden);
  const address = new URL(location.href);
  if (isHidden) address.searchParams.delete("framework");
  else address.searchParams.set("framework", "true");
  history.replaceState(history.state, "", address);
}

/** Whether range text such as `0-3,8-64:8` holds a rank. @param {string} text @param {number} rank */
export function holds(text, rank) {
  return text.split(",").some((part) => {
    const found = /^(\d+)(?:-(\d+)(?::(\d+))?)?$/.exec(part);
    if (!found) return false;
    const [first, last, by] = [Number(found[1]), Number(found[2] ?? found[1]), Number(found[3] ?? 1)];
    return rank >= first && rank <= last && (rank - first) % by === 0;
  });
}

/** Show the branch that `#rank-17` names: the innermost one that holds the rank. */
function showRank() {
  const found = /^#rank-(\d+)$/.exec(location.hash);
  const root = tree();
  if (!found || !root) return;
  const rank = Number(found[1]);
  for (const old of root.querySelectorAll(".segment[data-shown]")) old.removeAttribute("data-shown");
  const segments = [...root.querySelectorAll("details.segment")];
  const holding = segments.filter((part) => holds(part.getAttribute("data-ranks") ?? "", rank));
  const innermost = holding.find((part) => !holding.some((other) => other !== part && part.contains(other)));
  const isCut = innermost?.querySelector(":scope > .stack-more") ?? null;
  const address = new URL(location.href);
  if ((!innermost || isCut) && !address.searchParams.has("stack_rank")) {
    // Not among the branches that the page came with: the server puts the rank's own first.
    address.searchParams.set("stack_rank", String(rank));
    location.replace(address);
    return;
  }
  if (!innermost) return;
  openAround(innermost);
  innermost.setAttribute("data-shown", ""); // which a live update leaves as it is
  innermost.scrollIntoView({ block: "center" });
  const summary = innermost.querySelector("summary");
  if (summary) summary.focus({ preventScroll: true });
}

/** Show the first branch with the stack that the address names. */
function showSignature() {
  const wanted = tree()?.querySelector(".segment.is-wanted");
  if (!wanted || location.hash) return;
  openAround(wanted);
  wanted.scrollIntoView({ block: "center" });
}

/** Put the reader's choices back on a tree that was just written. */
function restore() {
  const root = tree();
  if (!root) return;
  if (hidesFramework !== null && root.classList.contains("hide-framework") !== hidesFramework) {
    showFramework(root, hidesFramework);
  }
  const box = root.querySelector("[data-stack-framework]");
  if (box instanceof HTMLInputElement) box.checked = root.classList.contains("hide-framework");
  const field = root.querySelector("[data-stack-search]");
  if (field instanceof HTMLInputElement && isSearching && field.value !== isSearching) field.value = isSearching;
  showFold(root);
  search(root);
}

/** @param {Event} event */
function clicked(event) {
  const root = tree();
  const target = event.target instanceof Element ? event.target : null;
  if (!root || !target) return;
  const more = target.closest("[data-more]");
  const stepper = target.closest("[data-stack-step]");
  if (target.closest("[data-stack-fold]")) fold(root);
  else if (stepper) step(root, Number(stepper.getAttribute("data-stack-step")));
  else if (more instanceof HTMLElement) {
    event.preventDefault();
    void openMore(more).then(restore);
  } else if (target.closest("[data-stack-all]")) {
    const address = new URL(location.href);
    address.searchParams.set("find", isSearching.trim());
    address.searchParams.delete("at");
    address.searchParams.delete("skip");
    location.assign(address);
  } else keepChoice(target.closest("a[data-keep]"));
}

/** A link to other frames leads to the same frames hidden. @param {Element | null} link */
function keepChoice(link) {
  if (!(link instanceof HTMLAnchorElement) || hidesFramework === null) return;
  const address = new URL(link.href);
  if (hidesFramework) address.searchParams.delete("framework");
  else address.searchParams.set("framework", "true");
  link.href = address.href;
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const root = tree();
  if (!root || event.ctrlKey || event.altKey || event.metaKey) return;
  const field = root.querySelector("[data-stack-search]");
  if (event.target === field && event.key === "Enter") {
    event.preventDefault();
    step(root, event.shiftKey ? -1 : 1);
  } else if (!(event.target instanceof HTMLInputElement) && isSearching && /^n$/i.test(event.key)) {
    // `g n` leads to the nodes: that chord is of the whole page and comes first.
    if (!event.defaultPrevented) step(root, event.key === "N" ? -1 : 1);
  }
}

export function startStacks() {
  if (!tree() && !document.getElementById("live")) return;
  const field = tree()?.querySelector("[data-stack-search]");
  if (field instanceof HTMLInputElement) isSearching = field.value;
  document.addEventListener("click", clicked);
  document.addEventListener("keydown", pressed);
  document.addEventListener("input", (event) => {
    const root = tree();
    const target = event.target;
    if (!root || !(target instanceof HTMLInputElement)) return;
    if (target.hasAttribute("data-stack-framework")) hideFramework(root, target.checked);
    else if (target.hasAttribute("data-stack-search")) {
      isSearching = target.value;
      current = -1;
      search(root);
    }
  });
  document.addEventListener("toggle", (event) => {
    const root = tree();
    if (root && event.target instanceof Element && root.contains(event.target)) showFold(root);
  }, true);
  document.addEventListener("hangwatch:shown", restore);
  addEventListener("hashchange", showRank);
  startStackKeys();
  restore();
  showSignature();
  showRank();
}
