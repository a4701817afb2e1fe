// The list of all channels: find by name, tick what the timeline shows.

class Chooser {
  constructor(box, channels, shownAtFirst, { changed }) {
    Object.assign(this, { channels, changed });
    this.chosen = new Set(channels.slice(0, shownAtFirst));
    this.boxes = new Map();
    const search = make("input", { type: "search", placeholder: "Find a channel", "aria-label": "Find a channel" });
    const preset = (words, pick) => {
      const button = make("button", { type: "button", textContent: words });
      button.addEventListener("click", () => this.set(pick()));
      return button;
    };
    const list = make("ul");
    for (const series of channels) {
      const tick = make("input", { type: "checkbox" });
      tick.addEventListener("change", () => this.toggle(series));
      const item = make("li", {}, make("label", {}, tick, make("span", {}, ...breakable(series.name))));
      this.boxes.set(series, { tick, item });
      list.append(item);
    }
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      for (const [series, { item }] of this.boxes) item.hidden = !series.name.toLowerCase().includes(wanted);
    });
    box.append(make("div", { className: "tools" }, search, preset("Most blamed", () => channels.slice(0, shownAtFirst)), preset("None", () => [])), list);
    this.#refresh();
  }

  get shown() { return this.channels.filter((series) => this.chosen.has(series)); }

  set(channels) {
    this.chosen = new Set(channels);
    this.#refresh();
    this.changed();
  }

  toggle(series) {
    if (!this.chosen.delete(series)) this.chosen.add(series);
    this.#refresh();
    this.changed();
  }

  #refresh() {
    for (const [series, { tick }] of this.boxes) tick.checked = this.chosen.has(series);
    $("choose").textContent = `Channels ${this.chosen.size} of ${this.channels.length}`;
  }
}
