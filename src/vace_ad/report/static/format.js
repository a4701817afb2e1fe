// Numbers and times as text, and round places for the ticks of an axis.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...[1, 2, 5, 10, 15, 30].map((s) => s * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((m) => m * MINUTE), ...[1, 2, 3, 6, 12].map((h) => h * HOUR),
  ...[1, 2, 3, 7, 14].map((d) => d * DAY),
];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120];

const two = (value) => String(value).padStart(2, "0");

/** A number as finely as `scale`, the size of what it is compared with, asks for. */
function number(value, scale = Math.abs(value)) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.max(Math.abs(value), scale);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2).replace("e+", "e");
  const digits = scale > 0 ? Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(scale)) - 1)) : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}

/** Ticks at 1, 2 or 5 times a power of ten. */
function roundTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return { ticks: [low], step: 1 };
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step || 0); // never −0
  return { ticks, step };
}

/** A moment (ms since 1970) in full, as finely as `step` (ms) asks for. */
function moment(ms, step) {
  const date = new Date(ms);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return step >= DAY && ms % DAY === 0 ? day : `${day} ${timeOfDay(ms, step)}`;
}

/** The date that two texts of moments share, said once. */
const dateOf = (text) => (text.match(/^\d+ \w+ \d+ (?=\d)/) ?? [""])[0];
const sameDay = (text, as) => (dateOf(as) && dateOf(text) === dateOf(as) ? text.slice(dateOf(as).length) : text);
const fromTo = (from, to) => `${from} to ${sameDay(to, from)}`;

function timeOfDay(ms, step) {
  const date = new Date(ms);
  let text = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  if (step < MINUTE) text += `:${two(date.getUTCSeconds())}`;
  if (step < SECOND) text += (((ms % SECOND) + SECOND) % SECOND / SECOND).toFixed(step < 1 ? 6 : 3).slice(1);
  return text;
}

/** Places and labels between two moments: at most `count`, at round times of the calendar. */
function timeTicks(from, to, count) {
  const rough = (to - from) / Math.max(1, count);
  if (rough > 14 * DAY) return monthTicks(from, to, rough);
  const step = rough < 1 ? roundTicks(0, to - from, count).step : TIME_STEPS.find((s) => s >= rough) ?? 14 * DAY;
  const ticks = [];
  let day = null;
  const monday = step % (7 * DAY) === 0 ? 4 * DAY : 0; // 1 January 1970 was a Thursday
  for (let at = Math.ceil((from - monday) / step) * step + monday; at <= to; at += step) {
    const date = new Date(at);
    const today = Math.floor(at / DAY);
    const dayName = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    const label = step >= DAY ? dayName : timeOfDay(at, step);
    const under = step >= DAY ? (day === null || date.getUTCMonth() !== new Date(day * DAY).getUTCMonth() ? String(date.getUTCFullYear()) : "") : today === day ? "" : dayName;
    ticks.push({ at, label, under, major: day !== null && under !== "" });
    day = today;
  }
  return ticks;
}

function monthTicks(from, to, rough) {
  const months = MONTH_STEPS.find((m) => m * 30.4 * DAY >= rough) ?? Math.ceil(rough / (3650 * DAY)) * 120;
  const start = new Date(from);
  const ticks = [];
  let index = Math.floor((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months;
  for (let year = null; ; index += months) {
    const at = Date.UTC(Math.floor(index / 12), index % 12, 1);
    if (at > to) return ticks;
    if (at < from) continue;
    const now = Math.floor(index / 12);
    ticks.push({ at, label: months >= 12 ? String(now) : MONTHS[index % 12], under: months >= 12 || now === year ? "" : String(now), major: now !== year });
    year = now;
  }
}
