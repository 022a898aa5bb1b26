// @ts-check
// The theme and UTC buttons, and the stored choices behind them.

/** @param {string} key @param {string} value */
function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // storage may be forbidden: the choice then lasts until the page is left
  }
}

/** @returns {"light" | "dark"} */
export function shownTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function isUtc() {
  return document.documentElement.dataset.utc === "1";
}

export function toggleTheme() {
  const next = shownTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  store("hangwatch.theme", next);
  document.dispatchEvent(new Event("hangwatch:theme"));
}

export function toggleUtc() {
  const next = isUtc() ? "0" : "1";
  document.documentElement.dataset.utc = next;
  store("hangwatch.utc", next);
  showUtc();
  document.dispatchEvent(new Event("hangwatch:utc"));
}

export function showHelp() {
  const dialog = document.getElementById("help");
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

function showUtc() {
  const button = document.querySelector('[data-action="utc"]');
  button?.setAttribute("aria-pressed", String(isUtc()));
}

export function startControls() {
  showUtc();
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    const action = target?.getAttribute("data-action");
    if (action === "theme") toggleTheme();
    if (action === "utc") toggleUtc();
    if (action === "help") showHelp();
    closeOthers(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenu();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("hangwatch:theme")),
  );
}

/** Close the open menu and stand on its button again. */
function closeMenu() {
  const menu = document.querySelector("details.drop[open]");
  menu?.removeAttribute("open");
  menu?.querySelector("summary")?.focus();
}

/** Close open menus when the click was elsewhere. @param {EventTarget | null} target */
function closeOthers(target) {
  for (const menu of document.querySelectorAll("details.drop[open]")) {
    if (!(target instanceof Node) || !menu.contains(target)) menu.removeAttribute("open");
  }
}
