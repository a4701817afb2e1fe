// The list of all channels: find by name, tick what the timeline shows.

class Chooser {
  constructor(box, channels, shownAtFirst, { changed }) {
    Object.assign(this, { channels, changed, count: shownAtFirst, following: true });
    this.chosen = new Set(channels.slice(0, shownAtFirst)); // in the order in which they are drawn
    this.pinned = new Set(); // ticked by hand: they stay whatever event is chosen
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
      const item = make("li", {}, make("label", {}, tick, named("span", series.name)));
      this.boxes.set(series, { tick, item });
      list.append(item);
    }
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      for (const [series, { item }] of this.boxes) item.hidden = !series.name.toLowerCase().includes(wanted);
    });
    const follow = make("input", { type: "checkbox", id: "follow", checked: true });
    follow.addEventListener("change", () => { this.following = follow.checked; });
    const choice = make("label", { className: "switch" }, follow, "Follow the chosen event");
    box.append(make("div", { className: "tools" }, search, choice, preset("Most blamed", () => channels.slice(0, shownAtFirst)), preset("None", () => [])), list);
    this.#refresh();
  }

  get shown() { return [...this.chosen]; }

  set(channels) {
    this.pinned.clear();
    this.#take(channels);
  }

  /** Show the suspects of an event first, then what was ticked by hand, then the most blamed. */
  follow(suspects) {
    if (!this.following || !suspects.length) return;
    const order = [...suspects.slice(0, this.count), ...this.pinned], rest = this.channels.filter((series) => !order.includes(series));
    this.#take([...order, ...rest.slice(0, Math.max(0, this.count - order.length))]);
  }

  #take(channels) {
    this.chosen = new Set(channels);
    this.#refresh();
    this.changed();
  }

  toggle(series) {
    if (this.chosen.delete(series)) this.pinned.delete(series);
    else { this.chosen.add(series); this.pinned.add(series); }
    this.#refresh();
    this.changed();
  }

  #refresh() {
    for (const [series, { tick }] of this.boxes) tick.checked = this.chosen.has(series);
    $("choose").textContent = `Channels ${this.chosen.size} of ${this.channels.length}`;
  }
}
