// @ts-check
// Applies the stored theme before the first paint. Blocking, in the head, and no module for that
// reason; the buttons are in controls.js.
(() => {
  const root = document.documentElement;
  /** @param {string} key */
  const stored = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage may be forbidden; the page then follows the system
    }
  };
  const theme = stored("hangwatch.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  if (stored("hangwatch.utc") === "1") root.dataset.utc = "1";
  root.dataset.script = "1";
})();
