// The packed curves: tiles found by their place in one long text, unpacked when first needed.

const KEPT_TILES = 1200; // unpacked at a time, 32 or 64 kB each; the longest unused go first

class Store {
  constructor(doc, text) {
    this.text = text;
    this.layout = doc.layout;
    this.offset = 0;
    this.unpacked = new Map(); // tile -> arrays, in order of last use
    this.pending = 0;
    this.ready = () => {}; // called when a tile has arrived
    this.failed = () => {};
    this.blobs = {};
    for (const [name, chars] of Object.entries(doc.blobs)) this.blobs[name] = this.#take(chars);
    this.series = doc.series.map((spec) => new Series(this, spec, doc.rows, this.#levels(spec.chars, doc.rows)));
    this.ranges = new Map(); // column -> {lower, upper, nats}, what was expected of it
    for (const series of this.series) {
      if (!["lower", "upper", "nats"].includes(series.role)) continue;
      if (!this.ranges.has(series.column)) this.ranges.set(series.column, {});
      this.ranges.get(series.column)[series.role] = series;
    }
  }

  async bytes({ from, to }) {
    const packed = Uint8Array.from(atob(this.text.slice(from, to)), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  /** The arrays of a tile, or null while it is being unpacked. */
  get(tile) {
    const found = this.unpacked.get(tile);
    if (found) {
      this.unpacked.delete(tile);
      this.unpacked.set(tile, found);
      return found;
    }
    if (!tile.asked) {
      tile.asked = true;
      this.pending++;
      this.bytes(tile).then((buffer) => this.#keep(tile, this.#decode(buffer, tile))).catch(this.failed);
    }
    return null;
  }

  #keep(tile, arrays) {
    tile.asked = false;
    this.pending--;
    this.unpacked.set(tile, arrays);
    if (this.unpacked.size > KEPT_TILES) this.unpacked.delete(this.unpacked.keys().next().value);
    this.ready();
  }

  #decode(buffer, { samples, planes }) {
    const { block, bits } = this.layout;
    const blocks = Math.ceil(samples / block);
    const origin = new Float64Array(buffer, 0, blocks);
    const step = new Float64Array(buffer, blocks * 8, blocks);
    const codes = new Uint8Array(buffer, blocks * 16);
    const missing = 2 ** bits - 1;
    const out = [];
    for (let plane = 0; plane < planes; plane++) {
      const values = new Float64Array(samples);
      let code = 0;
      for (let i = 0, at = plane * samples; i < samples; i++, at++) {
        code = (code + codes[at] + (bits === 16 ? codes[at + planes * samples] << 8 : 0)) & missing;
        values[i] = code === missing ? NaN : origin[(i / block) | 0] + code * step[(i / block) | 0];
      }
      out.push(values);
    }
    return { low: out[0], high: out[planes - 1] };
  }

  #levels(chars, rows) {
    const { tile, factor } = this.layout;
    return chars.map((lengths, level) => {
      const bin = factor ** level;
      const bins = Math.ceil(rows / bin);
      const tiles = lengths.map((length, t) => {
        const place = this.#take(length);
        const samples = Math.min(tile, bins - t * tile);
        return length ? { ...place, samples, planes: level ? 2 : 1, asked: false } : null;
      });
      return { bin, tiles };
    });
  }

  #take(chars) {
    const from = this.offset;
    this.offset += chars;
    return { from, to: this.offset };
  }
}

class Series {
  constructor(store, spec, rows, levels) {
    Object.assign(this, { store, rows, levels, name: spec.name, role: spec.role, column: spec.column });
  }

  /** The coarsest level with at least one bin for each of `width` columns of pixels. */
  levelFor(from, to, width) {
    for (let level = this.levels.length - 1; level > 0; level--) {
      if ((to - from) / this.levels[level].bin >= width) return level;
    }
    return 0;
  }

  /** Visit the pieces covering rows [from, to) as finely as `level`, coarser where need be. */
  visit(level, from, to, see) {
    const { bin, tiles } = this.levels[level];
    const span = this.store.layout.tile * bin;
    for (let t = Math.floor(from / span); t * span < to; t++) {
      const a = Math.max(from, t * span), b = Math.min(to, (t + 1) * span, this.rows);
      if (b <= a) continue;
      const arrays = tiles[t] && this.store.get(tiles[t]);
      if (arrays) see(arrays, Math.floor(a / bin) - t * this.store.layout.tile, Math.ceil(b / bin) - t * this.store.layout.tile, t * span, bin);
      else if (level + 1 < this.levels.length) this.visit(level + 1, a, b, see);
    }
  }
}
