// Sorts, filters and pages the tables of class "rows". The rows are in the page already, so the
// whole table is shown without this script. With it, only one page of rows is in the document at
// a time, so that ten thousand of them are sorted as fast as a hundred.
"use strict";

const PAGE = 100;

class Rows {
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    for (const row of this.rows) row.text = Rows.searchable(row);
    this.headings = [...table.tHead.rows[0].cells];
    this.filters = document.querySelector(`[data-filters-for="${table.id}"]`);
    this.pager = document.querySelector(`[data-pager-for="${table.id}"]`);
    this.keys = new Map();
    this.page = 0;
    const choices = this.filters.closest("details");
    if (choices) choices.open = !window.matchMedia("(max-width: 640px)").matches;
    const asked = new URLSearchParams(location.search);
    for (const filter of this.filters.elements) {
      if (asked.has(filter.name)) filter.value = asked.get(filter.name);
    }
    this.headings.forEach((heading, column) => {
      heading.querySelector("button")?.addEventListener("click", () => this.sortBy(column));
    });
    for (const event of ["input", "change"]) {
      this.filters.addEventListener(event, () => this.choose());
    }
    this.filters.addEventListener("submit", (event) => event.preventDefault());
    for (const button of this.pager.querySelectorAll("button")) {
      button.addEventListener("click", () => this.turn(Number(button.dataset.step)));
    }
    this.choose();
  }

  // Returns the text that a search examines: names and columns, without the notes below a name.
  static searchable(row) {
    const text = (cell) => (cell.querySelector("bdi") ?? cell).textContent;
    return [...row.cells].map(text).join("\n").toLowerCase();
  }

  // Returns a number for each row, by which the column is sorted: the cell's own number, or the
  // position of its text among all texts of the column. They are computed once.
  keysOf(column) {
    if (!this.keys.has(column)) {
      const texts = this.rows.map((row) => row.cells[column].textContent.trim());
      const key = this.headings[column].dataset.kind === "number" ? Rows.number : Rows.place(texts);
      this.keys.set(column, new Map(this.rows.map((row, i) => [row, key(texts[i])])));
    }
    return this.keys.get(column);
  }

  static number(text) {
    const value = parseFloat(text);
    return Number.isNaN(value) ? Infinity : value;
  }

  static place(texts) {
    const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
    const places = new Map([...new Set(texts)].sort(collator.compare).map((text, i) => [text, i]));
    return (text) => places.get(text);
  }

  sortBy(column) {
    const heading = this.headings[column];
    const now = heading.getAttribute("aria-sort");
    const next = now ? (now === "ascending" ? "descending" : "ascending") : heading.dataset.first;
    for (const other of this.headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", next);
    this.choose();
  }

  sorted(rows) {
    const column = this.headings.findIndex((heading) => heading.hasAttribute("aria-sort"));
    if (column < 0) return rows;
    const sign = this.headings[column].getAttribute("aria-sort") === "ascending" ? 1 : -1;
    const keys = this.keysOf(column);
    return rows.slice().sort((a, b) => sign * (keys.get(a) - keys.get(b)) || 0);
  }

  // Applies the filters. If cores, a launch or an accuracy are chosen, the chosen rows are ranked
  // among themselves.
  choose() {
    const values = new FormData(this.filters);
    const find = (values.get("find") || "").toLowerCase().trim();
    const since = values.get("since") || "";
    const kinds = ["cores", "launch", "accuracy"].filter((kind) => values.get(kind));
    const has = (row, kind) =>
      kind === "accuracy" ? row.dataset[kind] && row.dataset[kind] <= values.get(kind) : row.dataset[kind] === values.get(kind);
    const competing = this.rows.filter((row) => kinds.every((kind) => has(row, kind)));
    this.rank(competing, kinds.map((kind) => values.get(kind)).join());
    this.chosen = competing.filter(
      (row) =>
        (!find || row.text.includes(find)) &&
        (!since || row.querySelector("time").dateTime >= since),
    );
    this.page = 0;
    this.ordered = this.sorted(this.chosen);
    this.show();
    this.table.dispatchEvent(new CustomEvent("chosen", { detail: this.chosen }));
  }

  // Ranks rows that are in the order of their scores. A row's rank is one more than the number of
  // rows whose intervals lie above its own, and never better than that of the row before.
  rank(rows, kinds) {
    if ((this.kinds || "") === kinds) return;
    this.kinds = kinds;
    const lows = [];
    let rank = 1;
    for (const row of rows) {
      const high = Number(row.dataset.high);
      rank = Math.max(rank, 1 + lows.filter((low) => low > high).length);
      lows.push(Number(row.dataset.low));
      row.cells[0].textContent = rank;
    }
    this.keys.delete(0);
  }

  turn(step) {
    this.page += step;
    this.show();
    this.table.scrollIntoView({ block: "start" });
  }

  show() {
    const start = this.page * PAGE;
    const shown = this.ordered.slice(start, start + PAGE);
    for (const row of shown) row.hidden = false;
    this.body.replaceChildren(...shown);
    const [previous, next] = this.pager.querySelectorAll("button");
    previous.disabled = this.page === 0;
    next.disabled = start + PAGE >= this.ordered.length;
    previous.hidden = next.hidden = this.ordered.length <= PAGE;
    this.pager.hidden = false;
    const total = this.rows.length;
    const things = this.pager.dataset.things;
    const range = shown.length ? `${start + 1} to ${start + shown.length} of ` : "";
    this.pager.querySelector("[role=status]").textContent =
      `${range}${this.ordered.length} ${things}` +
      (this.ordered.length < total ? `, chosen from ${total}` : "");
  }
}

for (const table of document.querySelectorAll("table.rows[id]")) table.judged = new Rows(table);
