// The part of the axis in view, [from, to], shared by everything that draws.

const STILL = matchMedia("(prefers-reduced-motion: reduce)");

class View {
  constructor(clock) {
    this.first = clock.first;
    this.last = clock.last;
    this.narrowest = Math.min(8 * clock.step, this.last - this.first);
    this.from = this.first;
    this.to = this.last;
    this.watchers = [];
    this.flight = 0;
  }

  get span() { return this.to - this.from; }
  get whole() { return this.span >= (this.last - this.first) * 0.9999; }

  watch(seen) { this.watchers.push(seen); }

  /** Show [from, to], kept inside the table and no narrower than a few rows. */
  show(from, to) {
    cancelAnimationFrame(this.flight);
    this.#set(from, to);
  }

  move(distance) { this.show(this.from + distance, this.to + distance); }

  /** Zoom so that `factor` times as much is in view, the place `around` staying where it is. */
  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(Math.max(this.span * factor, this.narrowest), this.last - this.first);
    const from = around - ((around - this.from) / this.span) * span;
    this.show(from, from + span);
  }

  /** Go to [from, to] in a short glide, or at once for those who do not like motion. */
  glide(from, to) {
    cancelAnimationFrame(this.flight);
    if (STILL.matches) return this.#set(from, to);
    const begin = performance.now(), a = this.from, b = this.to;
    const tick = (now) => {
      const done = Math.min(1, Math.max(0, (now - begin) / 320));
      const eased = 1 - (1 - done) ** 3;
      this.#set(a + (from - a) * eased, b + (to - b) * eased);
      if (done < 1) this.flight = requestAnimationFrame(tick);
    };
    this.flight = requestAnimationFrame(tick);
  }

  #set(from, to) {
    const span = Math.min(Math.max(to - from, this.narrowest), this.last - this.first);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, this.first), this.last - span);
    this.to = this.from + span;
    for (const seen of this.watchers) seen();
  }
}
