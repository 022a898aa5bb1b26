// @ts-check
// Sections that a live update leaves as they are: the server marks them `data-same` instead of
// sending them again (see pieces.py).
import { forget } from "./times.js";

/** Tell htmx's morph to leave such sections alone, and the times which durations were sent again. */
export function startPieces() {
  // @ts-ignore: htmx is a plain script without types here
  htmx.registerExtension("hangwatch-pieces", {
    /** @param {Element} _ @param {{oldNode: Node, newNode: Node}} morph */
    htmx_before_morph_node: (_, { oldNode, newNode }) => {
      if (!(newNode instanceof Element) || !(oldNode instanceof Element)) return true;
      if (newNode.hasAttribute("data-same")) return false;
      if (newNode.hasAttribute("data-age")) forget(oldNode);
      return true;
    },
  });
}

/**
 * The newer of two updates that were held back, with what only the older one brought.
 * @param {string | null} older
 * @param {string} newer
 */
export function merged(older, newer) {
  if (older === null) return newer;
  const before = template(older);
  const now = template(newer);
  for (const same of now.content.querySelectorAll("[data-same]")) {
    const sent = before.content.querySelector(`[data-piece]#${CSS.escape(same.id)}`);
    if (sent) same.replaceWith(sent);
  }
  return now.innerHTML;
}

/** @param {string} text */
function template(text) {
  const made = document.createElement("template");
  made.innerHTML = text;
  return made;
}
