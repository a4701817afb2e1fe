// Puts the parts together once the page is there.

const doc = JSON.parse($("document").textContent);

function trouble(error) {
  $("trouble").hidden = false;
  $("trouble").textContent = `The curves cannot be shown: ${error.message}. A current Firefox, Chrome, Edge or Safari (16.4 or later) will do.`;
}

async function start() {
  readColours();
  const store = new Store(doc, $("packed").textContent);
  store.failed = trouble;
  const knots = await store.bytes(store.blobs.clock);
  const clock = new Clock(doc.time, new Float64Array(knots, 0, doc.time.knots), new Float64Array(knots, doc.time.knots * 8), doc.rows);
  const trajectory = store.blobs.trajectory ? new Trajectory(await store.bytes(store.blobs.trajectory), doc.training) : null;

  for (const event of doc.events) event.at = stretch(event, clock);

  const view = new View(clock);
  const timeline = new Timeline(doc, store, clock, view, { picked: (event) => { select(event); reveal(rows.get(event)); } });
  const channels = store.series.filter((series) => series.role === "channel");
  const chooser = new Chooser($("chooser"), channels, doc.shown, { changed: () => timeline.show(chooser.shown) });
  const detail = new Detail(doc, store, clock, trajectory, {
    isShown: (series) => chooser.chosen.has(series), toggle: (series) => chooser.toggle(series),
  });
  store.ready = () => { timeline.draw(); later(() => detail.draw()); };

  const rows = new Map([...$("events").tBodies[0].rows].map((row) => [doc.events[row.dataset.event], row]));

  /** Choose an event; `jump` also brings the timeline to it. */
  function select(event, jump = false) {
    timeline.selected = event;
    for (const [other, row] of rows) row.setAttribute("aria-current", String(other === event));
    detail.show(event);
    timeline.draw();
    if (!jump) return;
    reveal(rows.get(event));
    const from = clock.place(event.around[0]), to = clock.place(event.around[1] - 1), margin = 0.6 * (to - from);
    view.glide(from - margin, to + margin);
    const box = $("timeline").getBoundingClientRect();
    if (box.bottom < 160 || box.top > innerHeight - 160) $("timeline").scrollIntoView({ behavior: STILL.matches ? "auto" : "smooth" });
    $("announce").textContent = `Event ${doc.events.indexOf(event) + 1} of ${doc.events.length}, ${event.from}`;
  }

  function step(by) {
    if (!doc.events.length) return;
    const now = doc.events.indexOf(timeline.selected);
    select(doc.events[(now + by + doc.events.length) % doc.events.length], true);
  }

  for (const [event, row] of rows) row.addEventListener("click", () => select(event, true));
  wireButtons(view, timeline, detail, rows, step);
  listenToKeys(view, { stack: $("stack"), step });

  timeline.show(chooser.shown);
  timeline.drawLegend();
  const named = () => doc.events[Number(location.hash.replace("#event-", "")) - 1];
  addEventListener("hashchange", () => { if (named() && named() !== timeline.selected) select(named(), true); });
  const asked = named();
  const worst = doc.events.reduce((best, event) => ((event.severity ?? -1) > (best?.severity ?? -2) ? event : best), null);
  if (asked) select(asked, true); else if (worst) select(worst); else detail.show(null);
}

function wireButtons(view, timeline, detail, rows, step) {
  const on = (id, action) => $(id).addEventListener("click", action);
  on("zoom-in", () => view.zoom(0.5));
  on("zoom-out", () => view.zoom(2));
  on("zoom-all", () => view.glide(view.first, view.last));
  on("previous", () => step(-1));
  on("next", () => step(1));
  on("choose", () => {
    $("chooser").hidden = !$("chooser").hidden;
    $("choose").setAttribute("aria-expanded", String(!$("chooser").hidden));
  });
  $("fit").addEventListener("change", () => { timeline.fit = $("fit").checked; timeline.draw(); });
  const order = (id, other, before) => on(id, () => {
    $("events").tBodies[0].append(...[...rows].sort(([a], [b]) => before(a, b)).map(([, row]) => row));
    $(id).setAttribute("aria-pressed", "true");
    $(other).setAttribute("aria-pressed", "false");
  });
  order("by-time", "by-severity", (a, b) => a.start - b.start);
  order("by-severity", "by-time", (a, b) => (b.severity ?? -1) - (a.severity ?? -1));
  on("theme", () => repaint(timeline, detail, document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (change) => repaint(timeline, detail, change.matches ? "dark" : "light"));
  const selectIt = () => getSelection().selectAllChildren($("command")); // where copying is not allowed, to do it by hand
  on("copy", () => {
    if (!navigator.clipboard) return selectIt();
    return navigator.clipboard.writeText($("command").textContent).then(() => { $("copy").textContent = "Copied"; }, selectIt);
  });
}

function repaint(timeline, detail, theme) {
  document.documentElement.dataset.theme = theme;
  readColours();
  timeline.draw();
  timeline.drawLegend();
  detail.draw();
}

/** Scroll the table of events, and only it, so that a row can be seen. */
function reveal(row) {
  const box = $("events-scroll"), top = row.offsetTop - 40;
  if (top < box.scrollTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top;
}

let waiting = 0;
function later(action) {
  waiting ||= requestAnimationFrame(() => { waiting = 0; action(); });
}

start().catch(trouble);
