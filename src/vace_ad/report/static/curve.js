// One curve: gathered into what the pixels can show, then drawn. By hand: uPlot 1.6.32 adds 53 kB to
// every report, more than all drawing here, and does not load the levels of a million rows on demand.

/**
 * Gather a series between two places for `width` columns. Where rows are fewer than columns the
 * result has the points themselves; else the lowest and highest value of each column.
 */
function trace(series, clock, from, to, width) {
  width = Math.max(1, Math.round(width));
  const first = Math.max(0, Math.floor(clock.row(from)) - 1);
  const end = Math.min(series.rows, Math.ceil(clock.row(to)) + 2);
  const level = series.levelFor(first, end, width);
  const pieces = [];
  series.visit(level, first, end, (...piece) => pieces.push(piece));
  const bin = pieces.reduce((most, piece) => Math.max(most, piece[4]), 1);
  const scale = width / (to - from);
  const gathered = bin === 1 && end - first <= width
    ? gatherPoints(pieces, clock, first, end, (place) => (place - from) * scale)
    : gatherColumns(pieces, clock, first, width, (place) => (place - from) * scale);
  return { ...gathered, bin, wanted: series.levels[level].bin, width };
}

function gatherPoints(pieces, clock, first, end, column) {
  const x = [], y = []; // y is NaN where the curve breaks
  let least = Infinity, most = -Infinity;
  const cursor = clock.cursor(first);
  for (const [{ low }, begin, stop, row] of pieces) {
    for (let i = begin; i < stop; i++) {
      const at = column(cursor.place(row + i)), value = low[i];
      if (cursor.crossed) { x.push(at); y.push(NaN); }
      x.push(at);
      y.push(value);
      if (value < least) least = value;
      if (value > most) most = value;
    }
  }
  return { x, y, least, most, spacing: x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : Infinity };
}

function gatherColumns(pieces, clock, first, width, column) {
  const low = new Float64Array(width).fill(NaN), high = new Float64Array(width).fill(NaN);
  const broken = new Uint8Array(width);
  let least = Infinity, most = -Infinity, before = 0;
  const widen = (from, to, a, b) => {
    for (let c = Math.max(0, from), last = Math.min(width - 1, to); c <= last; c++) {
      if (!(low[c] <= a)) low[c] = a;
      if (!(high[c] >= b)) high[c] = b;
    }
  };
  const cursor = clock.cursor(first);
  for (const [arrays, begin, stop, row, bin] of pieces) {
    for (let i = begin; i < stop; i++) {
      const c0 = Math.floor(column(cursor.place(row + i * bin)));
      if (cursor.crossed) broken.fill(1, clampTo(before + 1, width), clampTo(c0, width));
      const c1 = bin === 1 ? c0 : Math.floor(column(cursor.place(Math.min(row + (i + 1) * bin, clock.count) - 1)));
      const inside = bin > 1 && cursor.crossed; // a gap lies within these rows
      const a = arrays.low[i], b = arrays.high[i];
      before = c1;
      if (a !== a) { broken.fill(1, clampTo(c0, width), clampTo(c1 + 1, width)); continue; }
      if (inside) {
        widen(c0, c0, a, b);
        broken.fill(1, clampTo(c0 + 1, width), clampTo(c1, width));
        widen(c1, c1, a, b);
      } else widen(c0, c1, a, b);
      if (c1 >= 0 && c0 < width) { if (a < least) least = a; if (b > most) most = b; }
    }
  }
  return { low, high, broken, least, most };
}

const clampTo = (value, width) => Math.min(Math.max(value, 0), width);

/** Draw a gathered curve. `left` is where its first column lies, `scale` CSS pixels a column. */
function drawCurve(context, curve, left, scale, toY, { colour, thickness = 1.3, dash = [] }) {
  context.save();
  Object.assign(context, { strokeStyle: colour, fillStyle: colour, lineWidth: curve.x ? thickness : Math.min(thickness, 1), lineJoin: "round", lineCap: "round" });
  context.setLineDash(dash);
  context.beginPath();
  if (curve.x) pathOfPoints(context, curve, left, scale, toY); else pathOfColumns(context, curve, left, scale, toY);
  context.stroke();
  if (curve.x && curve.spacing * scale > 9) {
    context.beginPath();
    curve.x.forEach((x, i) => {
      if (curve.y[i] === curve.y[i]) { context.moveTo(left + x * scale, toY(curve.y[i])); context.arc(left + x * scale, toY(curve.y[i]), 2, 0, 7); }
    });
    context.fill();
  }
  context.restore();
}

function pathOfPoints(context, { x, y }, left, scale, toY) {
  for (let i = 0, down = false; i < x.length; i++) {
    if (y[i] !== y[i]) { down = false; continue; }
    const px = left + x[i] * scale, py = toY(y[i]);
    if (!down) context.moveTo(px, py);
    context.lineTo(px + (down ? 0 : 0.01), py); // a lone point still leaves a dot
    down = true;
  }
}

function pathOfColumns(context, { low, high, broken }, left, scale, toY) {
  let last = 0;
  for (let c = 0, down = false; c < low.length; c++) {
    if (low[c] !== low[c]) { if (broken[c]) down = false; continue; }
    const x = left + (c + 0.5) * scale, a = toY(low[c]), b = toY(high[c]);
    const [near, far] = down && Math.abs(last - b) < Math.abs(last - a) ? [b, a] : [a, b];
    if (down) context.lineTo(x, near); else context.moveTo(x, near);
    context.lineTo(x, Math.abs(far - near) < 0.5 && !down ? near + 0.5 : far);
    last = far;
    down = true;
  }
}

/** The value of a curve at a column, as text: one number, or the range of what lies there. */
function readOff(curve, column) {
  const size = (curve.most - curve.least) || Math.abs(curve.most) || 1;
  if (curve.x) {
    let best = -1;
    curve.x.forEach((x, i) => { if (curve.y[i] === curve.y[i] && (best < 0 || Math.abs(x - column) < Math.abs(curve.x[best] - column))) best = i; });
    return best < 0 || Math.abs(curve.x[best] - column) > Math.max(2 * curve.spacing, 3) ? "no data" : number(curve.y[best], size);
  }
  const c = Math.min(Math.max(Math.floor(column), 0), curve.width - 1);
  if (curve.low[c] !== curve.low[c]) return "no data";
  const a = number(curve.low[c], size), b = number(curve.high[c], size);
  return a === b ? a : `${a} to ${b}`;
}
