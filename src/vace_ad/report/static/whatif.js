// The limit as a line one can drag, to see how many events a lower or higher one would give.

const REACH = 7; // pixels from the line within which the pointer takes hold of it

function wireWhatIf(doc, timeline) {
  const { alarm, score } = timeline, tried = doc.whatIf;
  if (!alarm || tried.length < 2) return;
  const lowest = tried[0][0], highest = tried[tried.length - 1][0], slider = $("threshold"), now = answerAt(tried, 0);
  const zero = tried.indexOf(now); // the slider counts thresholds tried, which lie closer near the present one
  Object.assign(slider, { min: 0, max: tried.length - 1, step: 1, value: zero });
  $("what-if").hidden = false;

  const set = (shift) => {
    alarm.shift = Math.min(Math.max(shift, lowest), highest);
    if (answerAt(tried, alarm.shift) === now) alarm.shift = 0;
    slider.value = tried.indexOf(answerAt(tried, alarm.shift));
    tell();
    timeline.draw();
  };
  const tell = () => {
    const [, events, words] = answerAt(tried, alarm.shift), moved = alarm.shift !== 0;
    const count = `${events.toLocaleString("en-US")} ${events === 1 ? "anomaly" : "anomalies"}`;
    $("answer").textContent = `${atEnds(doc, alarm.shift)}: ${count}${moved ? ` instead of ${now[1].toLocaleString("en-US")}` : ""}${words ? `; on normal data ${words}` : ""}`;
    slider.setAttribute("aria-valuetext", $("answer").textContent);
    $("threshold-reset").disabled = !moved;
  };
  slider.addEventListener("input", () => set(tried[Number(slider.value)][0]));
  $("threshold-reset").addEventListener("click", () => set(0));
  dragLine(score, () => alarm.shift, set);
  tell();
}

/** The threshold as the summary tells it: at the start and at the end, once where they are the same. */
function atEnds(doc, shift) {
  const [start, end] = doc.thresholdEnds.map((value) => number(value + shift));
  return start === end ? start : `${start} at the start, ${end} at the end`;
}

/** What the nearest threshold that was tried gave. */
function answerAt(tried, shift) {
  return tried.reduce((best, one) => (Math.abs(one[0] - shift) < Math.abs(best[0] - shift) ? one : best));
}

function dragLine(panel, shift, set) {
  const { canvas } = panel;
  const isNear = (event) => {
    const box = canvas.getBoundingClientRect(), y = panel.thresholdY(event.clientX - box.left);
    return y !== null && event.clientX - box.left > gutter() && Math.abs(event.clientY - box.top - y) <= REACH;
  };
  canvas.addEventListener("pointermove", (event) => { if (!event.buttons) canvas.style.cursor = isNear(event) ? "ns-resize" : ""; });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch" || !isNear(event)) return; // fingers have the slider
    event.stopPropagation(); // or the curves would move
    canvas.setPointerCapture(event.pointerId);
    panel.hold(true);
    const start = shift(), y = event.clientY, { toValue } = panel.scale, held = new AbortController();
    canvas.addEventListener("pointermove", (move) => {
      set(start + toValue(move.clientY) - toValue(y));
      move.stopPropagation();
    }, { signal: held.signal });
    const release = () => { held.abort(); panel.hold(false); set(shift()); };
    canvas.addEventListener("pointerup", release, { signal: held.signal });
    canvas.addEventListener("pointercancel", release, { signal: held.signal });
  });
}
