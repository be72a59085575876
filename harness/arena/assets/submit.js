// Lets a file be dropped anywhere on the form.
"use strict";

for (const form of document.querySelectorAll("[data-drop]")) {
  const input = form.querySelector("input[type=file]");
  const say = form.querySelector("[data-dropped]");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.toggle("over", kind === "dragover");
    });
  }
  form.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length !== 1) {
      say.textContent = "Drop exactly one file.";
      return;
    }
    input.files = event.dataTransfer.files;
    say.textContent = `${input.files[0].name} is ready to be submitted.`;
  });
}
