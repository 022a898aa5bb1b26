// @ts-check
// Brings branches that a large tree came without, in the place of the link that stands for them.

/** @param {HTMLElement} link its address is in `data-more`; as a plain link it leads to them too */
export async function openMore(link) {
  const holder = link.closest(".stack-more");
  const address = link.getAttribute("data-more");
  if (!holder || !address || link.getAttribute("aria-busy") === "true") return;
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (answer.redirected) return location.reload(); // to the login: the session is over
    if (!answer.ok) throw new Error(String(answer.status));
    const made = document.createElement("template");
    made.innerHTML = await answer.text(); // our own page's blocks, escaped by the server
    const first = made.content.querySelector("summary");
    holder.replaceWith(made.content);
    first?.focus();
  } catch {
    link.removeAttribute("aria-busy");
    link.textContent = "Not loaded: try again";
  }
}
