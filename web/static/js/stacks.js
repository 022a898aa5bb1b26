// @ts-check
// The merged stack tree: fold all, hide framework frames, search. Choices survive a live update.

let isSearching = "";
let hidesFramework = false;

/** @returns {HTMLElement | null} */
function tree() {
  return document.querySelector("[data-stacks]");
}

/** @param {HTMLElement} root */
function search(root) {
  let found = 0;
  const wanted = isSearching.toLowerCase();
  root.classList.toggle("is-searching", wanted !== "");
  for (const frame of root.querySelectorAll(".frame")) {
    const isHit = wanted !== "" && (frame.textContent ?? "").toLowerCase().includes(wanted);
    frame.classList.toggle("is-hit", isHit);
    if (!isHit) continue;
    found += 1;
    openAround(frame);
  }
  const counter = root.querySelector("[data-stack-found]");
  if (counter) counter.textContent = wanted === "" ? "" : `${found} found`;
}

/** @param {Element} frame */
function openAround(frame) {
  let around = frame.closest("details");
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
  showFold(root, !isFolded);
}

/** @param {HTMLElement} root @param {boolean} isFolded */
function showFold(root, isFolded) {
  const button = root.querySelector("[data-stack-fold]");
  if (button) button.textContent = isFolded ? "Unfold all" : "Fold all";
}

/** Put the reader's choices back on a tree that was just written. */
function restore() {
  const root = tree();
  if (!root) return;
  root.classList.toggle("hide-framework", hidesFramework);
  const box = root.querySelector("[data-stack-framework]");
  if (box instanceof HTMLInputElement) box.checked = hidesFramework;
  const field = root.querySelector("[data-stack-search]");
  if (field instanceof HTMLInputElement && field.value !== isSearching) field.value = isSearching;
  const segments = [...root.querySelectorAll("details.segment")];
  showFold(root, segments.length > 0 && segments.every((part) => !part.hasAttribute("open")));
  search(root);
}

export function startStacks() {
  document.addEventListener("click", (event) => {
    const root = tree();
    const target = event.target instanceof Element ? event.target : null;
    if (root && target?.closest("[data-stack-fold]")) fold(root);
  });
  document.addEventListener("input", (event) => {
    const root = tree();
    const target = event.target;
    if (!root || !(target instanceof HTMLInputElement)) return;
    if (target.hasAttribute("data-stack-framework")) {
      hidesFramework = target.checked;
      root.classList.toggle("hide-framework", hidesFramework);
    } else if (target.hasAttribute("data-stack-search")) {
      isSearching = target.value;
      search(root);
    }
  });
  document.addEventListener("hangwatch:shown", restore);
}
