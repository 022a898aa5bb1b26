// @ts-check
// The offline page: files may be dropped on the form, the choice is counted, the report can be saved.
// Without it the form is an ordinary one.

const MIB = 1024 * 1024;

/** @param {FileList | null} files */
function told(files) {
  if (!files || files.length === 0) return "";
  const bytes = [...files].reduce((sum, file) => sum + file.size, 0);
  const count = files.length === 1 ? "1 file" : `${files.length.toLocaleString("en")} files`;
  return `${count}, ${bytes < MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`}`;
}

/** @param {HTMLElement} form */
function startDropping(form) {
  const field = form.querySelector("input[type=file]");
  const chosen = form.querySelector("[data-chosen]");
  if (!(field instanceof HTMLInputElement) || !chosen) return;
  const show = () => (chosen.textContent = told(field.files));
  field.addEventListener("change", show);
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("is-over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("is-over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("is-over");
    if (!event.dataTransfer || event.dataTransfer.files.length === 0) return;
    field.files = event.dataTransfer.files;
    show();
  });
  form.addEventListener("submit", () => {
    chosen.textContent = "Reading…";
  });
  show();
}

/** @param {HTMLElement} button */
function save(button) {
  const held = document.getElementById(button.dataset.saveFrom ?? "");
  if (!held) return;
  const address = URL.createObjectURL(new Blob([held.textContent ?? ""], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = button.dataset.save ?? "report.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export function startOffline() {
  const form = document.querySelector("[data-dropzone]");
  if (form instanceof HTMLElement) startDropping(form);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-save]") : null;
    if (button instanceof HTMLElement) save(button);
  });
}
