// A panel: one or several curves over the shared axis, with shaded events behind them.

const HATCH = 7; // pixels between the lines over stretches without data

/** Where the curves lie inside a canvas: a gutter at the left for the numbers. */
const gutter = () => (innerWidth < 520 ? 38 : 52);

/** From and to, on the axis, of rows [start, end), or of the gap before a row where they are none. */
function stretch({ start, end }, clock) {
  const half = clock.step / 2, gap = start === end;
  const from = gap ? clock.place(Math.max(0, start - 1)) + half : clock.place(start) - half;
  const to = gap ? clock.place(Math.min(start, clock.count - 1)) - half : clock.place(end - 1) + half;
  return [from, Math.max(from, to)];
}

/** The same in pixels, at least two of them. */
function inPixels([from, to], toX) {
  const a = toX(from), b = toX(to);
  return b - a < 2 ? [(a + b) / 2 - 1, (a + b) / 2 + 1] : [a, b];
}

/** Shade events over the height of a plot; those of a kind without data are hatched. */
function shade(context, events, selected, { left, width, top, height, toX }) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  if (selected && !events.includes(selected)) events = [...events, selected]; // a near miss
  let shaded = -Infinity; // where many short events share a pixel, it is shaded once
  for (const event of events) {
    const [a, b] = inPixels(event.at, toX), chosen = event === selected;
    if (b < left || a > left + width || (b <= shaded && !chosen)) continue;
    if (event.kind === "no data") hatch(context, Math.max(a, left), Math.min(b, left + width), top, height, chosen);
    else {
      context.fillStyle = event.idle ? colours["none-fill"] : chosen ? colours["event-strong"] : colours["event-fill"];
      const from = chosen ? a : Math.max(a, shaded);
      context.fillRect(from, top, b - from, height);
    }
    shaded = Math.max(shaded, b);
    if (chosen) {
      context.fillStyle = event.kind === "no data" ? colours.none : colours.event;
      context.fillRect(a - 0.5, top, 1, height);
      context.fillRect(b - 0.5, top, 1, height);
    }
  }
  context.restore();
}

function hatch(context, a, b, top, height, chosen) {
  context.fillStyle = colours["none-fill"];
  context.fillRect(a, top, b - a, height);
  context.save();
  context.beginPath();
  context.rect(a, top, b - a, height);
  context.clip();
  context.strokeStyle = colours.none;
  context.globalAlpha = chosen ? 0.7 : 0.35;
  context.beginPath();
  for (let x = Math.floor((a - height) / HATCH) * HATCH; x < b; x += HATCH) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

/** What was expected of a channel between two places: {lower, upper}, gathered; null without it. */
function traceRange(store, column, clock, from, to, width) {
  const range = store.ranges.get(column);
  return range ? { lower: trace(range.lower, clock, from, to, width), upper: trace(range.upper, clock, from, to, width) } : null;
}

class Panel {
  /** `lines`: [{series, colour, dash}]; `alarm`: {level, series, shift}, the threshold to draw. */
  constructor(kind, title, lines, store, alarm = null) {
    Object.assign(this, { kind, lines, store, alarm });
    this.value = make("span");
    this.canvas = make("canvas", { role: "img", "aria-label": `Curve of ${title}` });
    this.blame = make("em");
    this.element = make("div", { className: `panel ${kind}` }, make("header", {}, named("b", title), this.blame, this.value), this.canvas);
    this.curves = [];
  }

  /** Draw what `frame` says is in view. */
  draw(frame) {
    const { context, width, height } = prepare(this.canvas);
    const left = gutter(), ratio = this.canvas.width / Math.max(1, width);
    const top = this.kind === "score" ? 15 : 4; // the score has the events' numbers above it
    const plot = { left, width: width - left, top, height: height - top - 4, bottom: height };
    plot.toX = (place) => left + ((place - frame.from) / (frame.to - frame.from)) * plot.width;
    this.curves = this.lines.map(({ series }) => trace(series, frame.clock, frame.from, frame.to, plot.width * ratio));
    const range = this.kind === "channel" ? traceRange(this.store, this.lines[0].series.column, frame.clock, frame.from, frame.to, plot.width * ratio) : null;
    this.#threshold = this.alarm && this.#alarmLine(frame, plot, ratio);
    const [least, most] = this.#held ?? this.#range(frame, range);
    const [warp, back] = this.kind === "score" ? [steep, gentle] : [(x) => x, (x) => x]; // evidence grows fast
    const from = warp(least), to = warp(most);
    const toY = (value) => plot.top + ((to - warp(value)) / (to - from)) * plot.height;
    this.scale = { least, most, toY, toValue: (y) => back(to - ((y - plot.top) / plot.height) * (to - from)) };

    this.#grid(context, frame, plot, toY, least, most);
    shade(context, frame.idle, null, { ...plot, top: 0, height });
    shade(context, frame.events, frame.selected, { ...plot, top: 0, height });
    context.save();
    context.beginPath();
    context.rect(left, 0, plot.width, height);
    context.clip();
    const spans = range ? frame.events.map(({ at }) => inPixels(at, plot.toX)).filter(([a, b]) => b > left && a < width) : [];
    const place = { left, width: plot.width, top: 0, bottom: height, scale: 1 / ratio, toY };
    this.lines.forEach((line, i) => drawWithRange(context, this.curves[i], range, spans, place, { ...line, colour: colours[line.colour] }));
    if (this.#threshold) this.#alarm(context, plot, toY, ratio);
    context.restore();
    if (this.kind === "score") this.#numbers(context, frame, plot);
    const guilt = frame.selected?.blame.find(({ column }) => column === this.lines[0].series.column);
    this.blame.textContent = guilt ? `${(100 * guilt.share).toFixed(0)} % of ${frame.selected.name}` : "";
  }

  #threshold = null; // what was drawn last: [[x, value], ...] from left to right
  #held = null; // lowest and highest value while somebody drags the threshold

  /** Keep the height as it is, so that a threshold being dragged follows the hand. */
  hold(on) { this.#held = on ? [this.scale.least, this.scale.most] : null; }

  /** The threshold's place at `x`, in pixels from the top. */
  thresholdY(x) {
    const line = this.#threshold;
    if (!line?.length) return null;
    const i = line.findIndex(([at]) => at >= x), [, value] = line[i < 0 ? line.length - 1 : i];
    return this.scale.toY(value);
  }

  #alarmLine(frame, plot, ratio) {
    const { level, series, shift } = this.alarm;
    if (!series) return [[plot.left, level + shift], [plot.left + plot.width, level + shift]];
    const curve = trace(series, frame.clock, frame.from, frame.to, plot.width * ratio), line = [];
    const add = (column, value) => { if (value === value) line.push([plot.left + column / ratio, value + shift]); };
    if (curve.x) curve.x.forEach((x, i) => add(x, curve.y[i]));
    else curve.low.forEach((low, c) => add(c + 0.5, (low + curve.high[c]) / 2));
    return line;
  }

  /** Put the values under the crosshair into the heading. */
  read(x) {
    const ratio = this.canvas.width / Math.max(1, this.canvas.clientWidth);
    this.value.textContent = x === null ? "" : this.curves
      .map((curve, i) => (this.curves.length > 1 ? `${this.lines[i].series.name} ` : "") + readOff(curve, (x - gutter()) * ratio)).join("  ·  ");
  }

  #range(frame, expected) {
    const extents = frame.fit ? this.curves : this.lines.map(({ series }) => wholeExtent(series));
    let least = Math.min(...extents.map((e) => e.least)), most = Math.max(...extents.map((e) => e.most));
    for (const [, value] of this.#threshold ?? []) { least = Math.min(least, value); most = Math.max(most, value); }
    if (expected && frame.fit) { // the curve keeps at least half of the height
      const room = (most - least) / 2 || Infinity;
      [least, most] = [Math.min(least, Math.max(expected.lower.least, least - room)), Math.max(most, Math.min(expected.upper.most, most + room))];
    }
    if (!(least <= most)) return [0, 1];
    const slack = (most - least) * 0.06 || Math.abs(most) * 0.05 || 1;
    return this.kind === "score" ? [Math.min(least, 0), most + slack] : [least - slack, most + slack];
  }

  #grid(context, frame, plot, toY, least, most) {
    context.fillStyle = colours.grid;
    for (const { at } of frame.ticks) context.fillRect(Math.round(plot.toX(at)), 0, 1, plot.bottom);
    const few = roundTicks(least, most, plot.height > 90 ? 4 : 3);
    const steeply = this.kind === "score" && most > 8 ? { ticks: [0, 1, ...[10, 100, 1e3, 1e4, 1e5].filter((value) => value <= most)], step: 1 } : null;
    const { ticks, step } = steeply ?? (few.ticks.length > 1 ? few : roundTicks(least, most, 5));
    Object.assign(context, { textAlign: "right", textBaseline: "middle" });
    for (const value of ticks) {
      context.fillStyle = colours.grid;
      context.fillRect(plot.left, Math.round(toY(value)), plot.width, 1);
      context.fillStyle = colours.soft;
      context.fillText(tickLabel(value, step), plot.left - 6, Math.min(Math.max(toY(value), 7), plot.bottom - 7));
    }
    context.fillStyle = colours.line;
    context.fillRect(plot.left, plot.bottom - 1, plot.width, 1);
    if (frame.training) {
      const [a, b] = inPixels(frame.training, plot.toX);
      const from = Math.max(a, plot.left), to = Math.min(b, plot.left + plot.width);
      context.fillStyle = colours.train;
      if (to > from) context.fillRect(from, plot.bottom - 2, to - from, 2);
    }
  }

  #alarm(context, plot, toY, ratio) {
    const line = this.#threshold.map(([x, value]) => [x, toY(value)]);
    if (!line.length) return;
    context.save();
    context.beginPath();
    context.moveTo(line[0][0], 0); // rows of the training may have no threshold
    for (const [x, y] of line) context.lineTo(x, y);
    context.lineTo(line[line.length - 1][0], 0);
    context.clip();
    drawCurve(context, this.curves[0], plot.left, 1 / ratio, toY, { colour: colours.event, thickness: 1.6 });
    context.restore();
    context.strokeStyle = colours.event;
    context.setLineDash([5, 4]);
    context.beginPath();
    line.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    context.setLineDash([]);
  }

  /** Numbers of the events along the top, as long as they do not touch. */
  #numbers(context, frame, plot) {
    Object.assign(context, { textAlign: "center", textBaseline: "top" });
    context.save();
    context.font = `600 ${context.font}`;
    let free = plot.left;
    frame.events.forEach((event, i) => {
      const [a, b] = inPixels(event.at, plot.toX);
      const from = Math.max(a, plot.left), to = Math.min(b, plot.left + plot.width);
      const half = context.measureText(String(i + 1)).width / 2 + 3;
      const x = Math.min((from + to) / 2, plot.left + plot.width - half); // the last one whole, too
      if (to < plot.left || from > plot.left + plot.width || x - half < free) return;
      context.fillStyle = event.kind === "no data" ? colours.soft : colours.event;
      context.fillText(String(i + 1), x, 1);
      free = x + half;
    });
    context.restore();
  }
}

function tickLabel(value, step) {
  if (value !== 0 && (Math.abs(value) >= 1e6 || step < 1e-4)) return value.toExponential(1).replace("e+", "e");
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return (Math.abs(value) < step / 1e6 ? 0 : value).toFixed(digits).replace("-", "−");
}

/** Lowest and highest value of a whole series, from its coarsest level. */
function wholeExtent(series) {
  if (series.extent) return series.extent;
  let least = Infinity, most = -Infinity;
  series.visit(series.levels.length - 1, 0, series.rows, ({ low, high }) => {
    for (const value of low) if (value < least) least = value;
    for (const value of high) if (value > most) most = value;
  });
  const extent = { least, most };
  if (least <= most) series.extent = extent;
  return extent;
}
