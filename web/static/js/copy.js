// @ts-check
// Copy buttons. Plain-http pages have no clipboard API, so selecting and copying is the second way.

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

const NAMES = ["aria-label", "title"];
const SAID_MS = 1600;
/** @type {WeakSet<Element>} those that say something in place of their names */
const saying = new WeakSet();

/** Say a word in place of the button's own name, for a moment. @param {Element} button @param {string} word */
function say(button, word) {
  saying.add(button);
  const own = NAMES.map((name) => button.getAttribute(name));
  for (const name of NAMES) button.setAttribute(name, word);
  setTimeout(() => {
    saying.delete(button);
    button.classList.remove("is-done");
    NAMES.forEach((name, at) => {
      if (own[at] === null) button.removeAttribute(name);
      else button.setAttribute(name, own[at] ?? "");
    });
  }, SAID_MS);
}

export function startCopying() {
  document.addEventListener("click", async (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (!target || saying.has(target)) return;
    try {
      await copy(target.getAttribute("data-copy") ?? "");
      target.classList.add("is-done");
      say(target, "Copied");
    } catch {
      say(target, "The browser forbids copying: select the text instead");
    }
  });
}
