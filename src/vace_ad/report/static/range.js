// A curve against what was expected of it, and the scale of evidence; the live page draws so, too.

/** Evidence on a logarithmic scale that is straight around zero, and back. */
const steep = (value) => Math.asinh(2 * value), gentle = (place) => Math.sinh(place) / 2;

/** The outlines of a range as paths from left to right: [[x, low, high], ...] without holes. */
function outlines({ lower, upper }, left, scale) {
  const runs = [[]], points = Boolean(lower.x && upper.x), n = points ? Math.min(lower.x.length, upper.x.length) : lower.low?.length ?? 0;
  for (let i = 0; i < n; i++) {
    const [x, low, high] = points ? [lower.x[i], lower.y[i], upper.y[i]] : [i + 0.5, lower.low[i], upper.high[i]];
    if (low === low && high === high) runs[runs.length - 1].push([left + x * scale, low, high]);
    else if ((points || lower.broken[i]) && runs[runs.length - 1].length) runs.push([]);
  }
  return runs.filter((run) => run.length);
}

/** One closed path around a range; a lone point is a pixel wide. */
function pathOfRange(context, runs, toY) {
  for (const run of runs) {
    const wide = run.length > 1 ? run : [[run[0][0] - 0.5, run[0][1], run[0][2]], [run[0][0] + 0.5, run[0][1], run[0][2]]];
    wide.forEach(([x, , high], i) => (i ? context.lineTo(x, toY(high) - 0.5) : context.moveTo(x, toY(high) - 0.5)));
    for (const [x, low] of [...wide].reverse()) context.lineTo(x, toY(low) + 0.5);
    context.closePath();
  }
}

/** A curve with what was expected behind it; in events, the part that leaves the range stands out. */
function drawWithRange(context, curve, range, spans, { left, width, top, bottom, scale, toY }, style) {
  const runs = range ? outlines(range, left, scale) : [];
  context.save();
  context.fillStyle = colours.band;
  context.beginPath();
  pathOfRange(context, runs, toY);
  context.fill();
  Object.assign(context, { strokeStyle: colours["band-line"], lineWidth: 1 });
  context.beginPath();
  for (const run of runs) run.forEach(([x, low, high], i) => (i ? context.lineTo(x, toY((low + high) / 2)) : context.moveTo(x, toY((low + high) / 2))));
  context.stroke();
  context.restore();
  drawCurve(context, curve, left, scale, toY, style);
  if (!runs.length || !spans.length) return;
  context.save();
  context.beginPath();
  for (const [a, b] of spans) context.rect(a, top, b - a, bottom - top);
  context.clip();
  context.beginPath();
  context.rect(left, top, width, bottom - top);
  pathOfRange(context, runs, toY);
  context.clip("evenodd");
  drawCurve(context, curve, left, scale, toY, { ...style, colour: colours.event, thickness: 2 });
  context.restore();
}
