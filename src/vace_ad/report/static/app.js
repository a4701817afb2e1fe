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

  for (const event of [...doc.events, ...doc.nearly]) event.at = stretch(event, clock);
  doc.events.forEach((event, i) => { event.name = `event ${i + 1}`; });
  doc.nearly.forEach((event, i) => { event.name = `near miss ${i + 1}`; });

  const view = new View(clock);
  const timeline = new Timeline(doc, store, clock, view, { picked: (event) => { select(event); list.reveal(event); } });
  const channels = store.series.filter((series) => series.role === "channel");
  const chooser = new Chooser($("chooser"), channels, doc.shown, { changed: () => timeline.show(chooser.shown) });
  const detail = new Detail(doc, store, clock, trajectory, {
    isShown: (series) => chooser.chosen.has(series), toggle: (series) => chooser.toggle(series),
  });
  store.ready = () => { timeline.draw(); later(() => detail.draw()); };

  const list = new EventList(doc, { chosen: (event) => select(event, true) });

  /** Choose an event; `jump` also brings the timeline to it. */
  function select(event, jump = false) {
    timeline.selected = event;
    list.mark(event);
    chooser.follow(event.blame.map(({ column }) => detail.byColumn.get(column)));
    detail.show(event);
    timeline.draw();
    if (!jump) return;
    list.reveal(event);
    const from = clock.place(event.around[0]), to = clock.place(event.around[1] - 1), margin = 0.6 * (to - from);
    view.glide(from - margin, to + margin);
    const box = $("timeline").getBoundingClientRect();
    if (box.bottom < 160 || box.top > innerHeight - 160) $("timeline").scrollIntoView({ behavior: STILL.matches ? "auto" : "smooth" });
    $("announce").textContent = `${$("detail-title").textContent}, ${event.from}`;
  }

  function step(by) {
    const events = list.visible; // in the order of the table, without those filtered out
    if (!events.length) return;
    const now = events.indexOf(timeline.selected);
    select(events[now < 0 && by < 0 ? events.length - 1 : (now + by + events.length) % events.length], true);
  }

  wireButtons(view, timeline, detail, step);
  wireWhatIf(doc, timeline);
  wireDownloads(doc, list, timeline);
  listenToKeys(view, { stack: $("stack"), step });

  timeline.show(chooser.shown);
  timeline.drawLegend();
  const address = () => {
    const [, kind, place] = location.hash.match(/^#(event|near)-(\d+)$/) ?? [];
    return (kind === "near" ? doc.nearly : doc.events)[Number(place) - 1];
  };
  addEventListener("hashchange", () => { if (address() && address() !== timeline.selected) select(address(), true); });
  const asked = address();
  const worst = doc.events.reduce((best, event) => ((event.severity ?? -1) > (best?.severity ?? -2) ? event : best), null);
  if (asked) select(asked, true); else if (worst) select(worst); else detail.show(null);
}

function wireButtons(view, timeline, detail, step) {
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
  on("theme", () => repaint(timeline, detail, document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (change) => repaint(timeline, detail, change.matches ? "dark" : "light"));
  let before = null; // paper is light
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; repaint(timeline, detail, "light"); timeline.drawNow(); });
  addEventListener("afterprint", () => { if (before) repaint(timeline, detail, before); });
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

let waiting = 0;
function later(action) {
  waiting ||= requestAnimationFrame(() => { waiting = 0; action(); });
}

start().catch(trouble);
