// What is live: a submission's status, and a board that says when it has changed.
"use strict";

class Submission {
  constructor(section) {
    this.section = section;
    this.left = null;
    const source = new EventSource(section.dataset.live);
    source.addEventListener("status", (event) => {
      const status = JSON.parse(event.data);
      this.show(status);
      if (status.state === "done" || status.state === "cancelled") {
        source.close();
        location.reload(); // the whole result, as the server writes it
      }
    });
    setInterval(() => this.tick(), 1000);
  }

  part(name) {
    return this.section.querySelector(`[data-${name}]`);
  }

  show(status) {
    const state = status.place ? `queued, place ${status.place}` : status.state;
    if (this.part("state").textContent !== state) this.part("state").textContent = state;
    this.left = status.seconds_left;
    this.part("step").textContent = status.step || "";
    const items = status.stages.map((stage) => {
      const item = document.createElement("li");
      const of = stage.total ? ` of ${stage.total}` : "";
      item.textContent = stage.steps ? `${stage.stage}: ${stage.steps}${of}` : stage.stage;
      return item;
    });
    this.part("stages").replaceChildren(...items);
    this.tick();
  }

  tick() {
    if (this.left === null) return;
    this.part("left").textContent =
      this.left > 0
        ? `About ${Math.ceil(this.left)} s left, by what past gradings took.`
        : "Longer than past gradings took.";
    this.left -= 1;
  }
}

for (const section of document.querySelectorAll("[data-live]")) new Submission(section);

// A board is read again when it has changed, but not under the hands of whoever searches in it.
const board = document.querySelector("table.rows[id]");
if (board) {
  const filters = document.querySelector(`[data-filters-for="${board.id}"]`);
  const untouched = new URLSearchParams(new FormData(filters)).toString();
  let version = null;
  const root = document.querySelector('link[href$="assets/arena.css"]').getAttribute("href");
  const source = new EventSource(root.replace("assets/arena.css", "live/board"));
  source.addEventListener("board", (event) => {
    const changed = version !== null && version !== event.data;
    version = event.data;
    if (!changed) return;
    const now = new URLSearchParams(new FormData(filters)).toString();
    if (now === untouched && !filters.contains(document.activeElement)) {
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
