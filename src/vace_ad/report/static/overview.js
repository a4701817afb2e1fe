// The strip at the top: the whole table's score and events, and the part of it in view.

const GRIP = 10; // pixels around an edge of the window that take hold of it

class Overview {
  constructor(canvas, view, clock, score, events) {
    Object.assign(this, { canvas, view, clock, score, events });
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => { if (!event.buttons) this.#hint(event); });
  }

  draw(frame) {
    const { context, width, height } = prepare(this.canvas);
    const left = gutter(), plot = { left, width: width - left, top: 0, height };
    const { first, last, from, to } = this.view;
    plot.toX = (place) => left + ((place - first) / (last - first)) * plot.width;
    const ratio = this.canvas.width / Math.max(1, width);
    context.fillStyle = colours.page;
    context.fillRect(left, 0, plot.width, height);
    if (frame.training) {
      const [a, b] = inPixels(frame.training, plot.toX);
      context.fillStyle = colours["train-fill"];
      context.fillRect(a, 0, b - a, height);
    }
    shade(context, frame.idle, null, plot);
    shade(context, frame.events, frame.selected, plot);
    const curve = trace(this.score, this.clock, first, last, plot.width * ratio);
    const top = steep(curve.most), span = top - steep(curve.least) || 1;
    drawCurve(context, curve, left, 1 / ratio, (value) => 4 + ((top - steep(value)) / span) * (height - 8), { colour: colours.soft, thickness: 1 });
    this.#window(context, plot.toX(from), plot.toX(to), plot);
    for (const event of frame.events) { // a mark that even the shortest event and the dimmest corner keep
      const [a, b] = inPixels(event.at, plot.toX);
      context.fillStyle = event.kind === "no data" ? colours.none : colours.event;
      context.fillRect(a, height - 3, b - a, 3);
    }
    this.canvas.setAttribute("aria-valuenow", Math.round((100 * ((from + to) / 2 - first)) / (last - first)));
    this.canvas.setAttribute("aria-valuetext", frame.words);
  }

  #window(context, a, b, { left, width, height }) {
    context.fillStyle = colours.card;
    context.globalAlpha = 0.6;
    context.fillRect(left, 0, a - left, height);
    context.fillRect(b, 0, left + width - b, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    context.roundRect(a + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5, 4);
    context.stroke();
    context.fillStyle = colours.accent;
    for (const x of [a, b]) { context.beginPath(); context.roundRect(x - 2.5 + (x === a ? 1 : -1), height / 2 - 8, 5, 16, 2); context.fill(); }
  }

  #grip(event) {
    const box = this.canvas.getBoundingClientRect(), left = gutter(), width = box.width - left;
    const x = event.clientX - box.left, { first, last, from, to } = this.view;
    const scale = (last - first) / width, place = first + (x - left) * scale, near = GRIP * scale;
    const [a, b] = [Math.abs(place - from), Math.abs(place - to)];
    const edge = Math.min(a, b) < Math.min(near, Math.max((to - from) / 3, near / 2)) ? (a < b ? "from" : "to") : null;
    return { place, scale, edge, inside: place >= from && place <= to };
  }

  #hint(event) {
    const { edge, inside } = this.#grip(event);
    this.canvas.style.cursor = edge ? "ew-resize" : inside && !this.view.whole ? "grab" : "pointer";
  }

  #press(event) {
    if (event.button !== 0) return;
    const { canvas, view } = this, { place, edge, inside, scale } = this.#grip(event);
    const begin = { x: event.clientX, from: view.from, to: view.to };
    if (!edge && !inside) {
      view.show(place - view.span / 2, place + view.span / 2);
      Object.assign(begin, { from: view.from, to: view.to });
    }
    canvas.setPointerCapture(event.pointerId);
    const drag = (move) => {
      const shift = (move.clientX - begin.x) * scale;
      if (edge === "from") view.show(Math.min(begin.from + shift, begin.to - view.narrowest), begin.to);
      else if (edge === "to") view.show(begin.from, Math.max(begin.to + shift, begin.from + view.narrowest));
      else view.show(begin.from + shift, begin.to + shift);
    };
    const held = new AbortController();
    const release = () => held.abort();
    canvas.addEventListener("pointermove", drag, { signal: held.signal });
    canvas.addEventListener("pointerup", release, { signal: held.signal });
    canvas.addEventListener("pointercancel", release, { signal: held.signal });
  }
}
