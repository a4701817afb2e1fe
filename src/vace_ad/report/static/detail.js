// One event: what it is in words, who is to blame; for researchers, its path in the embedding.

const STRIP = 30; // pixels of the evidence below a suspect's curve

class Detail {
  constructor(doc, store, clock, trajectory, { isShown, toggle }) {
    Object.assign(this, { doc, store, clock, trajectory, isShown, toggle, event: null, charts: [] });
    this.byColumn = new Map(store.series.filter((series) => series.role === "channel").map((series) => [series.column, series]));
    this.cloud = make("canvas", { role: "img" });
    this.body = $("detail-body");
    this.research = $("research-body");
    $("research").addEventListener("toggle", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  show(event) {
    this.event = event;
    this.charts = [];
    const all = event?.near ? this.doc.nearly : this.doc.events;
    $("detail-title").textContent = event ? `${event.near ? "Near miss" : "Event"} ${all.indexOf(event) + 1} of ${all.length}` : "No events";
    this.body.replaceChildren(make("p", { className: "lead", textContent: event ? this.#words(event) : this.#nothing() }));
    if (event?.blame.length) this.body.append(this.#suspects(event));
    if (this.trajectory) this.research.replaceChildren(this.#path(event));
    this.draw();
  }

  draw() {
    for (const chart of this.charts) this.#curve(chart);
    if (this.trajectory && $("research").open) this.trajectory.draw(this.cloud, this.event);
  }

  #nothing() {
    const near = this.doc.nearly.length ? " The strongest stretches below the limit are listed as near misses." : "";
    return `No stretch of this table became an event.${near}`;
  }

  #words({ from, to, lasts, peak, kind, words, start, end, conditions }) {
    const when = lasts === "1 row" ? `At ${from}` : `From ${fromTo(from, to)} (${lasts})`;
    if (kind === "no data") return `${when} ${start === end ? "the table has no rows" : "values are missing"}. ${words}`;
    const outside = conditions ? ` Conditions were outside training then: ${conditions}. It may be no fault.` : "";
    return `${when}, strongest at ${sameDay(peak, from)}. ${words}${outside}`;
  }

  #suspects(event) {
    const list = make("ol", { className: "suspects" });
    for (const { column, share, typical, reading } of event.blame) {
      const series = this.byColumn.get(column), canvas = make("canvas", { role: "img", "aria-label": `${series.name} before, during and after the event` });
      const bar = make("i", { "aria-hidden": "true" });
      bar.style.setProperty("--share", Math.min(1, Math.max(0, share)));
      const button = make("button", { type: "button", className: "link" });
      const label = () => {
        const shown = this.isShown(series);
        button.textContent = shown ? "Hide above" : "Show above";
        button.setAttribute("aria-label", `${shown ? "Hide" : "Show"} ${series.name} in the timeline`);
      };
      button.addEventListener("click", () => { this.toggle(series); label(); });
      label();
      list.append(make("li", { className: "suspect" },
        make("div", { className: "line" }, named("b", series.name),
          make("span", { className: "share" }, bar, make("span", { textContent: `${(100 * share).toFixed(0)} %` })), button),
        canvas, this.#typical(typical, reading)));
      this.charts.push({ canvas, series, first: this.charts.length === 0 });
    }
    return make("div", {}, make("h3", { textContent: "Suspects, with their share of the blame" }), list);
  }

  #typical([before, during, after], reading) {
    const size = Math.max(...[before, during, after].filter((v) => v !== null).map(Math.abs), 0);
    const line = make("p", { className: "typical" });
    if (reading) line.append(make("b", { textContent: `${reading} at the peak` }), "; ");
    line.append("typically ");
    if (before !== null) line.append(`${number(before, size)} before, `);
    line.append(`${during === null ? "nothing" : number(during, size)} during`);
    if (after !== null) line.append(`, ${number(after, size)} after`);
    return line;
  }

  #curve({ canvas, series, first }) {
    const { context, width, height } = prepare(canvas), { clock, event } = this;
    const from = clock.place(event.around[0]), to = clock.place(event.around[1] - 1);
    const top = first ? 16 : 2, plot = { left: 0, width, top, height: height - top, toX: (place) => ((place - from) / (to - from || 1)) * width };
    const ratio = canvas.width / Math.max(1, width), curve = trace(series, clock, from, to, width * ratio);
    const range = traceRange(this.store, series.column, clock, from, to, width * ratio);
    const bottom = height - (range ? STRIP : 0);
    const least = Math.min(curve.least, range?.lower.least ?? Infinity), most = Math.max(curve.most, range?.upper.most ?? -Infinity);
    const toY = (value) => top + 5 + ((most - value) / (most - least || 1)) * (bottom - top - 10);
    shade(context, [event], null, plot);
    const place = { left: 0, width, top: 0, bottom, scale: 1 / ratio, toY };
    drawWithRange(context, curve, range, [inPixels(event.at, plot.toX)], place, { colour: colours.curve, thickness: 1.5 });
    if (range) this.#nats(context, series, { from, to, width, height, ratio, bottom });
    context.fillStyle = colours.line;
    context.fillRect(0, height - 1, width, 1);
    if (!first) return;
    const [a, b] = inPixels(event.at, plot.toX);
    Object.assign(context, { fillStyle: colours.soft, textBaseline: "top", textAlign: "center" });
    for (const [word, x, room] of [["before", a / 2, a], ["during", (a + b) / 2, b - a], ["after", (b + width) / 2, width - b]]) {
      if (room > context.measureText(word).width + 4) context.fillText(word, x, 1);
    }
  }

  /** The evidence of the channel, below its curve. */
  #nats(context, series, { from, to, width, height, ratio, bottom }) {
    const nats = trace(this.store.ranges.get(series.column).nats, this.clock, from, to, width * ratio);
    const most = Math.max(1, nats.most), room = height - bottom - 3;
    context.fillStyle = colours.event;
    const bar = (x, value, wide) => { if (value > 0) context.fillRect(x / ratio - wide / 2, height - 1 - (room * value) / most, wide, (room * value) / most); };
    if (nats.x) nats.x.forEach((x, i) => bar(x, nats.y[i], Math.min(6, Math.max(1, nats.spacing / ratio - 0.5))));
    else nats.high.forEach((value, c) => bar(c + 0.5, value, 1 / ratio));
    context.fillStyle = colours.line;
    context.fillRect(0, bottom, width, 1);
    Object.assign(context, { fillStyle: colours.soft, textBaseline: "top", textAlign: "left" });
    context.fillText(`evidence, up to ${number(most, 100)} nats`, 3, bottom + 3);
  }

  #path(event) {
    const name = event ? "Path of the event through the embedding" : "The embedding";
    this.cloud.setAttribute("aria-label", `${name}, in two dimensions`);
    const words = "Each dot is a short stretch of the table as the detector sees it; stretches that behave alike lie close together."
      + (this.doc.training ? " Green: learned from. Grey: the rest." : "") + (event ? " The line is this event, from the ring to the dot." : "");
    return make("div", { className: "cloud" }, make("h3", { textContent: name }), this.cloud, make("p", { textContent: words }));
  }
}
