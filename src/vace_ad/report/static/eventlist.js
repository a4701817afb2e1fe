// The table of events and that of near misses: order, search, filter, and which one is chosen.

const MANY_EVENTS = 20; // beyond it the most severe come first

class EventList {
  constructor(doc, { chosen }) {
    const rowsOf = (id, events, key) => [...$(id).tBodies[0].rows].map((row) => [events[row.dataset[key]], row]);
    this.rows = new Map(rowsOf("events", doc.events, "event"));
    this.nearly = new Map(rowsOf("nearly", doc.nearly, "near"));
    for (const [event, row] of [...this.rows, ...this.nearly]) row.addEventListener("click", () => chosen(event));
    this.names = new Map(doc.series.map((series) => [series.column, series.name.toLowerCase()]));
    this.order = "by-time";
    for (const id of ["by-time", "by-severity"]) $(id).addEventListener("click", () => this.sort(id));
    $("find").addEventListener("input", () => this.filter());
    $("kind").addEventListener("change", () => this.filter());
    if (!doc.events.some((event) => event.kind === "no data")) $("kind").hidden = true;
    $("filters").hidden = $("order").hidden = doc.events.length < 2;
    $("previous").disabled = $("next").disabled = !doc.events.length;
    $("near-misses").hidden = !doc.nearly.length;
    $("near-misses").open = !doc.events.length;
    this.sort(doc.events.length > MANY_EVENTS ? "by-severity" : "by-time");
    this.filter();
  }

  /** The events that the search and the filter let through, in the order of the table. */
  get visible() { return [...this.rows].filter(([, row]) => !row.hidden).map(([event]) => event); }

  sort(id) {
    const before = id === "by-time" ? (a, b) => a.start - b.start : (a, b) => (b.severity ?? -1) - (a.severity ?? -1);
    this.rows = new Map([...this.rows].sort(([a], [b]) => before(a, b)));
    $("events").tBodies[0].append(...this.rows.values());
    for (const other of ["by-time", "by-severity"]) $(other).setAttribute("aria-pressed", String(other === id));
  }

  filter() {
    const words = $("find").value.trim().toLowerCase().split(/\s+/), kind = $("kind").value;
    for (const [event, row] of this.rows) {
      const text = [row.textContent.toLowerCase(), event.kind, ...event.blame.map(({ column }) => this.names.get(column))].join(" ");
      row.hidden = !(words.every((word) => text.includes(word)) && (kind === "" || event.kind === kind));
    }
    const left = this.visible.length;
    $("found").textContent = left < this.rows.size ? `${left} of ${this.rows.size}` : "";
  }

  mark(event) {
    for (const [other, row] of [...this.rows, ...this.nearly]) row.setAttribute("aria-current", String(other === event));
  }

  /** Scroll the table, and only it, so that the row of an event can be seen. */
  reveal(event) {
    const box = $(event.near ? "nearly-scroll" : "events-scroll"), row = (event.near ? this.nearly : this.rows).get(event);
    if (event.near) $("near-misses").open = true;
    const top = row.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    if (top - 40 < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - 40;
  }
}
