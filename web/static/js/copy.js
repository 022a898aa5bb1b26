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

/** @param {Element} button @param {string} word */
function say(button, word) {
  button.setAttribute("aria-label", word);
  button.setAttribute("title", word);
}

export function startCopying() {
  document.addEventListener("click", async (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (!target) return;
    try {
      await copy(target.getAttribute("data-copy") ?? "");
      target.classList.add("is-done");
      say(target, "Copied");
    } catch {
      say(target, "The browser forbids copying: select the text instead");
    }
    setTimeout(() => {
      target.classList.remove("is-done");
      say(target, "Copy");
    }, 1600);
  });
}
