// Rows to places on the axis and back. Between two knots the axis is a straight line.

class Clock {
  constructor(time, rows, at, count) {
    this.rows = rows; // Float64Array (k), increasing
    this.at = at; // Float64Array (k), ms after the first row, or the row itself
    this.count = count;
    this.origin = time.origin;
    this.zone = time.zone;
    this.offsets = time.offsets; // [place, minutes ahead of UTC], by place
    this.step = time.step;
    this.gap = time.gap;
    this.first = at[0] - time.step / 2;
    this.last = at[at.length - 1] + time.step / 2;
  }

  /** The place of a row, which need not be whole. */
  place(row) {
    const k = this.#segment(this.rows, row);
    return this.#between(this.rows, this.at, k, row);
  }

  /** The row at a place, not rounded. */
  row(place) {
    const k = this.#segment(this.at, place);
    return this.#between(this.at, this.rows, k, place);
  }

  /** A quicker `place` for rows that only grow, also telling whether a gap was crossed. */
  cursor(firstRow) {
    const { rows, at, gap } = this;
    let k = this.#segment(rows, firstRow);
    const cursor = {
      crossed: false,
      place: (row) => {
        cursor.crossed = false;
        while (k + 2 < rows.length && rows[k + 1] <= row) {
          cursor.crossed ||= at[k + 1] - at[k] > gap && rows[k + 1] - rows[k] === 1;
          k++;
        }
        cursor.crossed ||= row === rows[k + 1] && row - rows[k] === 1 && at[k + 1] - at[k] > gap;
        return this.#between(rows, at, k, row);
      },
    };
    return cursor;
  }

  /** A place as text, as finely as `step` asks for. */
  text(place, step = this.step) {
    if (this.origin === null) return `row ${Math.round(Math.min(Math.max(place, 0), this.count - 1)).toLocaleString("en-US")}`;
    const ahead = this.ahead(place);
    const text = moment(this.origin + place + (ahead ?? 0) * MINUTE, step < 100 ? step : Math.max(step, SECOND));
    if (ahead === null) return text;
    const size = Math.abs(ahead);
    return `${text}${ahead < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  }

  /** How many minutes local clocks are ahead of UTC at a place; null where nobody knows. */
  ahead(place) {
    if (!this.offsets.length) return null;
    return (this.offsets.findLast(([at]) => at <= place) ?? this.offsets[0])[1];
  }

  ticks(from, to, count) {
    if (this.origin !== null) {
      const origin = this.origin + (this.ahead(from) ?? 0) * MINUTE;
      return timeTicks(origin + from, origin + to, count).map((tick) => ({ ...tick, at: tick.at - origin }));
    }
    return roundTicks(from, to, count).ticks
      .filter((at) => Number.isInteger(at))
      .map((at, i) => ({ at, label: at.toLocaleString("en-US"), under: i === 0 ? "row" : "", major: false }));
  }

  #segment(keys, value) {
    let low = 0, high = Math.max(0, keys.length - 2);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (keys[middle] <= value) low = middle; else high = middle - 1;
    }
    return low;
  }

  #between(from, to, k, value) {
    if (from.length === 1) return to[0] + (value - from[0]) * (from === this.rows ? this.step : 1 / this.step);
    const run = from[k + 1] - from[k];
    return run > 0 ? to[k] + ((value - from[k]) / run) * (to[k + 1] - to[k]) : to[k];
  }
}
