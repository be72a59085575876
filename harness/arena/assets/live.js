// Keeps pages current: the progress of a submission, and a board that has changed.
"use strict";

// An EventSource closes for good when a connection is refused. Connect again later, so that a
// restart of the arena, or too many requests, only cause a delay.
function watch(address, handlers) {
  let wait = 1000;
  let source = null;
  let over = false;
  const open = () => {
    source = new EventSource(address);
    source.addEventListener("open", () => {
      wait = 1000;
    });
    source.addEventListener("error", () => {
      if (over || source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, wait * (1 + Math.random()));
      wait = Math.min(2 * wait, 30000);
    });
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(event.data));
    }
  };
  open();
  return () => {
    over = true;
    source.close();
  };
}

// Reloads only once the arena answers, because the browser's own error page has no script.
async function reload(wait = 0) {
  for (;;) {
    await new Promise((over) => setTimeout(over, wait));
    const answer = await fetch(location.href).catch(() => null);
    if (answer && answer.status !== 429 && answer.status < 500) return location.reload();
    wait = Math.min(2 * wait + 1000, 30000);
  }
}

for (const refused of document.querySelectorAll("[data-retry]")) {
  reload(1000 * refused.dataset.retry * (1 + Math.random()));
}

// The server writes times in UTC; the page shows them in the reader's time zone.
for (const time of document.querySelectorAll("time[data-moment]")) {
  time.title = time.textContent;
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
}

// A form takes a time in the reader's time zone, and sends it in UTC.
for (const input of document.querySelectorAll("input[data-utc]")) {
  if (input.value) {
    const at = new Date(`${input.value}Z`);
    at.setMinutes(at.getMinutes() - at.getTimezoneOffset());
    input.value = at.toISOString().slice(0, 16);
  }
  input.form.addEventListener("formdata", ({ formData }) => {
    if (input.value) formData.set(input.name, new Date(input.value).toISOString());
  });
}

// The server sends everybody the same page, so the script asks for the reader's name.
for (const who of document.querySelectorAll("[data-who]")) {
  fetch(who.dataset.who)
    .then((answer) => answer.json())
    .then(({ name, author, organises }) => {
      who.querySelector("a").textContent = name || "Sign in";
      document.querySelector("[data-organises]").hidden = !organises;
      for (const cell of document.querySelectorAll("td.author")) {
        if (author) cell.classList.toggle("own", cell.textContent === author);
      }
    })
    .catch(() => {}); // the page stays as it is
}

for (const progress of document.querySelectorAll("[data-live]")) {
  const state = document.querySelector("[data-state]");
  const close = watch(progress.dataset.live, {
    state: (text) => {
      // A screen reader reads every change aloud, so leave an equal text alone.
      if (state.textContent.trim() !== text) state.textContent = text;
    },
    status: (html) => {
      progress.innerHTML = html; // rendered by the page's own template, which escapes it
    },
    over: () => {
      close();
      reload(); // the page with the whole result
    },
  });
  setInterval(() => {
    const left = progress.querySelector("[data-left]");
    if (!left) return;
    left.dataset.left -= 1;
    left.textContent =
      left.dataset.left > 0
        ? `About ${left.dataset.left} s left.`
        : "This grading takes longer than expected.";
  }, 1000);
}

// A board that has changed is loaded again, unless its reader is searching in it.
const board = document.querySelector("table.rows[id], [data-empty-board]");
const made = document.querySelector('meta[name="board-version"]');
if (board && made) {
  const filters = document.querySelector(`[data-filters-for="${board.id}"]`);
  const chosen = () => (filters ? new URLSearchParams(new FormData(filters)).toString() : "");
  const untouched = chosen();
  // The version of this page, so that changes before the first event are noticed.
  let version = made.content;
  const root = document.querySelector('link[href$="assets/arena.css"]').getAttribute("href");
  watch(root.replace("assets/arena.css", "live/board"), {
    board: (newest) => {
      const changed = version !== newest;
      version = newest;
      if (!changed) return;
      if (chosen() === untouched && !filters?.contains(document.activeElement)) {
        // A random delay, so that not all readers reload at the same moment.
        reload(2000 * Math.random());
      } else if (!document.querySelector("[data-changed]")) {
        const note = document.createElement("p");
        note.className = "notice";
        note.dataset.changed = "";
        note.setAttribute("role", "status");
        const link = document.createElement("a");
        link.href = location.href;
        link.textContent = "The board has changed: load it again.";
        note.append(link);
        board.before(note);
      }
    },
  });
}

// Buttons for actions that cannot be undone ask first.
for (const button of document.querySelectorAll("button.danger")) {
  button.addEventListener("click", (event) => {
    if (!window.confirm(`${button.textContent.trim()}?`)) event.preventDefault();
  });
}
