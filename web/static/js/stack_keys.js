// @ts-check
// Arrow keys in the stack tree, as in any tree view: up and down walk what is to be seen, right opens
// or goes in, left closes or goes out. Without it Tab and Enter do the same, one block at a time.

/** @param {Element} root */
function visible(root) {
  return [...root.querySelectorAll("details.segment > summary")].filter((summary) => {
    const outer = summary.parentElement?.parentElement?.closest("details.segment:not([open])");
    return !outer && summary instanceof HTMLElement;
  });
}

/** @param {HTMLDetailsElement} segment @param {boolean} isOpen @returns {Element | null} */
function sideways(segment, isOpen) {
  if (segment.open !== isOpen) {
    segment.open = isOpen;
    return null;
  }
  const near = isOpen
    ? segment.querySelector(":scope > details.segment")
    : segment.parentElement?.closest("details.segment");
  return near?.querySelector(":scope > summary") ?? null;
}

/** @param {KeyboardEvent} event @param {Element} summary @param {Element} root */
function goal(event, summary, root) {
  const segment = summary.parentElement;
  if (!(segment instanceof HTMLDetailsElement)) return undefined;
  const all = visible(root);
  const at = all.indexOf(/** @type {HTMLElement} */ (summary));
  if (event.key === "ArrowDown") return all[Math.min(at + 1, all.length - 1)];
  if (event.key === "ArrowUp") return all[Math.max(at - 1, 0)];
  if (event.key === "Home") return all[0];
  if (event.key === "End") return all[all.length - 1];
  if (event.key === "ArrowRight") return sideways(segment, true);
  if (event.key === "ArrowLeft") return sideways(segment, false);
  if (event.key === "*") return openSiblings(segment);
  return undefined;
}

/** @param {HTMLDetailsElement} segment */
function openSiblings(segment) {
  for (const near of segment.parentElement?.children ?? []) {
    if (near instanceof HTMLDetailsElement) near.open = true;
  }
  return null;
}

export function startStackKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey && event.key !== "*") return;
    const summary = event.target instanceof Element ? event.target.closest(".segment > summary") : null;
    const root = summary?.closest("[data-stacks]");
    if (!summary || !root) return;
    const next = goal(event, summary, root);
    if (next === undefined) return;
    event.preventDefault();
    if (next instanceof HTMLElement) next.focus();
  });
}
