// @ts-check
// Keeps what the reader points at, or has in focus, where it is on the screen, whatever a change has
// put above it: the page is scrolled by as much as it moved.

/** @type {{x: number, y: number} | null} */
let pointer = null;
/** @type {{id: string, top: number} | null} */
let held = null;

/** The nearest part of the page that a change leaves its name. */
function part() {
  const pointed = pointer && document.elementFromPoint(pointer.x, pointer.y);
  const at = pointed?.closest("#live [id]") ?? document.activeElement?.closest("#live [id]");
  return at ?? null;
}

/** To be called right before a change. */
export function hold() {
  const at = part();
  held = at && { id: at.id, top: at.getBoundingClientRect().top };
}

/** To be called right after it. */
export function settle() {
  const at = held && document.getElementById(held.id);
  if (at && held) scrollBy({ top: at.getBoundingClientRect().top - held.top, behavior: "instant" });
  held = null;
}

export function startAnchor() {
  document.addEventListener("pointermove", (event) => {
    pointer = event.pointerType === "mouse" ? { x: event.clientX, y: event.clientY } : null;
  });
  document.documentElement.addEventListener("pointerleave", () => {
    pointer = null;
  });
}
