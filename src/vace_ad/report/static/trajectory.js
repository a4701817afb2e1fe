// The embedding in two dimensions: every dot a stretch of the table, the event's path on top.

class Trajectory {
  constructor(buffer, training) {
    const count = buffer.byteLength / 16;
    this.rows = new Float64Array(buffer, 0, count);
    this.x = new Float32Array(buffer, count * 8, count);
    this.y = new Float32Array(buffer, count * 12, count);
    this.training = training;
    this.stride = count > 1 ? (this.rows[count - 1] - this.rows[0]) / (count - 1) : 1;
  }

  draw(canvas, event) {
    const { context, width, height } = prepare(canvas);
    const toPixel = this.#scales(event, width, height);
    this.#cloud(context, toPixel);
    if (!event) return;
    context.globalAlpha = 0.6;
    this.#path(context, toPixel, event.around[0], event.around[1], colours.soft, 1);
    context.globalAlpha = 1;
    const ends = this.#path(context, toPixel, event.start, event.end, colours.event, 2);
    if (ends) this.#ends(context, ends);
  }

  /** The middle 99 % of all dots and the whole of the event fit in. */
  #scales(event, width, height) {
    const range = (values) => {
      const sorted = Float32Array.from(values).sort();
      let low = sorted[Math.floor(0.005 * (sorted.length - 1))], high = sorted[Math.ceil(0.995 * (sorted.length - 1))];
      values.forEach((value, i) => {
        if (event && this.rows[i] >= event.start && this.rows[i] < event.end) { low = Math.min(low, value); high = Math.max(high, value); }
      });
      return [low, high > low ? high : low + 1];
    };
    const [x0, x1] = range(this.x), [y0, y1] = range(this.y), edge = 14;
    return (i) => [edge + ((this.x[i] - x0) / (x1 - x0)) * (width - 2 * edge), edge + ((y1 - this.y[i]) / (y1 - y0)) * (height - 2 * edge)];
  }

  #cloud(context, toPixel) {
    const [from, to] = this.training ?? [0, 0];
    const size = this.rows.length > 4000 ? 1.5 : 2.5;
    context.globalAlpha = this.rows.length > 4000 ? 0.4 : 0.55;
    for (const learned of [false, true]) {
      context.fillStyle = learned ? colours.train : colours.faint;
      for (let i = 0; i < this.rows.length; i++) {
        if ((this.rows[i] >= from && this.rows[i] < to) !== learned) continue;
        const [x, y] = toPixel(i);
        context.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }
    context.globalAlpha = 1;
  }

  #path(context, toPixel, from, to, colour, thickness) {
    Object.assign(context, { strokeStyle: colour, lineWidth: thickness, lineJoin: "round" });
    context.beginPath();
    let first = null, last = null, before = -Infinity;
    for (let i = 0; i < this.rows.length; i++) {
      if (this.rows[i] < from || this.rows[i] >= to) continue;
      const [x, y] = toPixel(i);
      if (this.rows[i] - before > 4 * this.stride) context.moveTo(x, y); else context.lineTo(x, y);
      before = this.rows[i];
      first ??= [x, y];
      last = [x, y];
    }
    context.stroke();
    return first && [first, last];
  }

  #ends(context, [first, last]) {
    context.lineWidth = 2;
    context.fillStyle = colours.card;
    context.strokeStyle = colours.event;
    context.beginPath();
    context.arc(...first, 5, 0, 7);
    context.fill();
    context.stroke();
    context.fillStyle = colours.event;
    context.beginPath();
    context.arc(...last, 5, 0, 7);
    context.fill();
  }
}
