// The stack of panels on one axis: what is in it, when it is drawn, and the crosshair over it.

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [12, 4]]; // told apart without colour, too

/** Colour and dash of the i-th line; the seventh has the first one's colour with another dash. */
const lineStyle = (i) => ({ colour: `signal-${i % 6}`, dash: DASHES[(i + Math.floor(i / 6)) % DASHES.length] });

const MANY = 16; // panels beyond which only those on the screen are drawn

class Timeline {
  constructor(doc, store, clock, view, { picked }) {
    Object.assign(this, { doc, store, clock, view, picked, selected: null, fit: true, channels: [] });
    this.training = doc.training && stretch({ start: doc.training[0], end: doc.training[1] }, clock);
    this.idle = doc.idle.map((one) => ({ idle: true, at: stretch(one, clock) }));
    const score = store.series[0];
    const signals = store.series.filter((series) => series.role === "signal");
    const line = store.series.find((series) => series.role === "threshold") ?? null;
    this.alarm = doc.threshold === null ? null : { level: doc.threshold, series: line, shift: 0 };
    this.score = new Panel("score", "Evidence over its limit", [{ series: score, colour: "score" }], store, this.alarm);
    this.fixed = [this.score];
    if (signals.length) {
      this.fixed.push(new Panel("signals", "Signals of the score",
        signals.map((series, i) => ({ series, ...lineStyle(i) })), store));
    }
    this.panels = [];
    this.overview = new Overview($("overview"), view, clock, score, doc.events);
    this.stack = $("stack");
    this.axis = make("canvas", { "aria-hidden": "true" });
    this.hair = make("div", { className: "hair", hidden: true }, make("span"));
    this.band = make("div", { className: "band", hidden: true });
    this.#wire();
    this.#legend(signals);
  }

  /** Show these channels, in this order, below the score. */
  show(channels) {
    const made = new Map(this.panels.map((panel) => [panel.lines[0].series, panel]));
    this.channels = channels;
    this.panels = [...this.fixed, ...channels.map((series) => made.get(series) ?? new Panel("channel", series.name, [{ series, colour: "curve" }], this.store))];
    this.stack.replaceChildren(...this.panels.map((panel) => panel.element), make("div", { className: "axis" }, this.axis), this.hair, this.band);
    this.draw();
  }

  /** Draw in the next frame, once, however often it is asked for. */
  draw() {
    this.due ||= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.due = 0;
    this.#draw();
  }

  plot() {
    const box = this.stack.getBoundingClientRect(), left = gutter();
    return { left: box.left + left, width: Math.max(1, box.width - left) };
  }

  #draw() {
    const { clock, view, doc } = this, { width } = this.plot();
    this.stack.style.setProperty("--gutter", `${gutter()}px`);
    const ticks = clock.ticks(view.from, view.to, Math.max(2, Math.floor(width / 72)));
    const step = view.span > 3 * DAY ? HOUR : clock.step;
    const words = fromTo(clock.text(Math.max(view.from, clock.at[0]), step), clock.text(Math.min(view.to, clock.at[clock.at.length - 1]), step));
    const frame = { from: view.from, to: view.to, clock, events: doc.events, selected: this.selected, training: this.training, idle: this.idle, fit: this.fit, ticks, words };
    this.overview.draw(frame);
    for (const panel of this.panels) {
      const box = this.panels.length > MANY ? panel.element.getBoundingClientRect() : null;
      if (!box || (box.bottom > -100 && box.top < innerHeight + 100)) panel.draw(frame);
    }
    this.#drawAxis(ticks, width);
    this.#tell(words);
    if (!this.hair.hidden) this.#readAt(this.hairX);
  }

  #drawAxis(ticks, width) {
    const { context } = prepare(this.axis), left = gutter();
    const toX = (place) => left + ((place - this.view.from) / this.view.span) * width;
    Object.assign(context, { textBaseline: "top" });
    let free = -Infinity;
    for (const { at, label, under, major } of ticks) {
      const x = toX(at), half = context.measureText(label).width / 2;
      context.fillStyle = major ? colours.soft : colours.line;
      context.fillRect(Math.round(x), 0, 1, 5);
      if (x + half > left + width || x - half < free) continue;
      free = x + half + 8;
      const centre = Math.max(x, half + 2);
      context.textAlign = "center";
      context.fillStyle = colours.soft;
      context.fillText(label, centre, 7);
      context.fillStyle = colours.ink;
      if (under) context.fillText(under, Math.min(centre, left + width - context.measureText(under).width / 2), 21);
    }
    if (this.clock.zone && innerWidth >= 520) {
      Object.assign(context, { fillStyle: colours.soft, textAlign: "left" });
      context.fillText(this.clock.zone, 2, 7);
    }
  }

  /** Say what is in view, and where the file has no finer detail. */
  #tell(words) {
    const curves = this.panels.flatMap((panel) => panel.curves);
    const coarse = Math.max(1, ...curves.filter((curve) => curve.bin > curve.wanted).map((curve) => curve.bin));
    const note = coarse > 1 && !this.store.pending ? ` · lowest and highest of every ${coarse.toLocaleString("en-US")} rows` : "";
    $("range").textContent = words + note;
    Object.assign(this.stack.dataset, { from: this.view.from, to: this.view.to, bin: Math.max(1, ...curves.map((curve) => curve.bin)) });
    clearTimeout(this.telling);
    this.telling = setTimeout(() => { $("announce").textContent = `Showing ${words}`; }, 800);
  }

  #wire() {
    const { view } = this;
    view.watch(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.stack);
    addEventListener("scroll", () => { if (this.panels.length > MANY) this.draw(); }, { passive: true });
    listen(this.stack, view, () => this.plot(), {
      hovered: (x) => this.#hover(x),
      clicked: (place) => this.#click(place),
      marking: (a, b, done) => this.#mark(Math.min(a, b), Math.max(a, b), done),
    });
  }

  #hover(clientX) {
    const { left, width } = this.plot();
    const inside = clientX !== null && clientX >= left && clientX <= left + width;
    this.hair.hidden = !inside;
    this.#readAt(inside ? clientX - left + gutter() : null);
  }

  #readAt(x) {
    this.hairX = x;
    for (const panel of this.panels) panel.read(x);
    if (x === null) return;
    this.hair.style.transform = `translateX(${x}px)`;
    const { width } = this.plot(), place = this.view.from + ((x - gutter()) / width) * this.view.span;
    const label = this.hair.firstChild;
    label.textContent = this.clock.text(place, Math.min(this.clock.step, MINUTE));
    const half = label.offsetWidth / 2;
    label.style.left = `${Math.min(Math.max(0, half - x), 0) + Math.max(0, half - x) - Math.max(0, x + half - width - gutter())}px`;
  }

  #click(place) {
    const slack = (5 / this.plot().width) * this.view.span;
    const near = [...this.doc.events, ...this.doc.nearly.filter((event) => event === this.selected)].filter((event) => {
      const [a, b] = event.at;
      return place >= a - slack && place <= b + slack;
    });
    if (near.length) this.picked(near.reduce((best, event) => (event.end - event.start < best.end - best.start ? event : best)));
  }

  #mark(a, b, done) {
    const { width } = this.plot(), toX = (place) => gutter() + ((place - this.view.from) / this.view.span) * width;
    this.band.hidden = done;
    Object.assign(this.band.style, { left: `${toX(a)}px`, width: `${toX(b) - toX(a)}px` });
    if (done) this.view.glide(a, b);
  }

  #legend(signals) {
    const { doc } = this, items = [];
    const add = (kind, words) => items.push(make("span", {}, make("i", { className: `swatch ${kind}` }), words));
    if (doc.events.some((event) => event.kind === "anomaly")) add("event", "event");
    if (doc.events.some((event) => event.kind === "no data")) add("none", "no data");
    for (const kind of new Set(doc.idle.map((one) => one.kind))) add("idle", `${kind}: not judged`);
    if (doc.training) add("train", "rows the detector learned from");
    if (this.store.ranges.size) add("expected", "expected range, given the other channels and the past");
    if (doc.threshold !== null) add("threshold", "limit of the evidence");
    signals.forEach(({ name }, i) => {
      const line = make("canvas", { className: "line" });
      const words = doc.signalWords[name] ? `${name}: ${doc.signalWords[name]}` : name;
      items.push(make("span", {}, line, words));
      (this.keys ??= []).push({ line, ...lineStyle(i) });
    });
    $("legend").append(...items);
  }

  /** Draw the samples of the legend, anew when light turns to dark. */
  drawLegend() {
    for (const { line, colour, dash } of this.keys ?? []) {
      const { context, width, height } = prepare(line);
      Object.assign(context, { strokeStyle: colours[colour], lineWidth: 2 });
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, height / 2);
      context.lineTo(width, height / 2);
      context.stroke();
    }
  }
}
