// What is live: a submission's status, and a board that says when it has changed.
"use strict";

for (const standing of document.querySelectorAll("[data-live]")) {
  const state = document.querySelector("[data-state]");
  const source = new EventSource(standing.dataset.live);
  source.addEventListener("state", (event) => {
    // A screen reader says it, and so not twice.
    if (state.textContent.trim() !== event.data) state.textContent = event.data;
  });
  source.addEventListener("standing", (event) => {
    standing.innerHTML = event.data; // as the page's own template writes it
  });
  source.addEventListener("over", () => {
    source.close();
    location.reload(); // the whole result, as the server writes it
  });
  setInterval(() => {
    const left = standing.querySelector("[data-left]");
    if (!left) return;
    left.dataset.left -= 1;
    left.textContent =
      left.dataset.left > 0
        ? `About ${left.dataset.left} s left, by what past gradings took.`
        : "It takes longer than any grading of late.";
  }, 1000);
}

// A board is read again when it has changed, but not under the hands of whoever searches in it.
const board = document.querySelector("table.rows[id], [data-empty-board]");
const made = document.querySelector('meta[name="board-version"]');
if (board && made) {
  const filters = document.querySelector(`[data-filters-for="${board.id}"]`);
  const chosen = () => (filters ? new URLSearchParams(new FormData(filters)).toString() : "");
  const untouched = chosen();
  // Of this page: what changes before the first event would go unseen otherwise.
  let version = made.content;
  const root = document.querySelector('link[href$="assets/arena.css"]').getAttribute("href");
  const source = new EventSource(root.replace("assets/arena.css", "live/board"));
  source.addEventListener("board", (event) => {
    const changed = version !== event.data;
    version = event.data;
    if (!changed) return;
    if (chosen() === untouched && !filters?.contains(document.activeElement)) {
      location.reload();
    } else if (!document.querySelector("[data-changed]")) {
      const note = document.createElement("p");
      note.className = "announcement";
      note.dataset.changed = "";
      note.setAttribute("role", "status");
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = "The board has changed: load it again.";
      note.append(link);
      board.before(note);
    }
  });
}
