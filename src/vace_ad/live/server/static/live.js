// The live page: loads everything once, then follows server-sent events. Text from the network is only ever inserted as text.

const state = { open: new Map(), history: new Map(), chosen: null, search: "", phases: null };
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;

const get = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
};
const post = (path) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
const when = (iso) => moment(Date.parse(iso), SECOND);

function alarmCard(alarm) {
  const silent = alarm.kind !== "anomaly";
  const card = make("li", { className: `alarm${silent ? " nodata" : ""}${alarm.resolved ? " resolved" : ""}` });
  card.dataset.alarm = alarm.alarm;
  if (location.hash === `#alarm=${alarm.alarm}`) card.classList.add("chosen");
  const name = make("button", { className: "link", type: "button" }, alarm.entity || "source");
  name.onclick = () => alarm.entity && choose(alarm.entity);
  const severity = alarm.severity === null ? "" : `severity ${Math.round(alarm.severity)}${alarm.level ? `, ${alarm.level}` : ""}`;
  card.append(make("div", { className: "top" }, name, make("b", {}, silent ? alarm.kind : severity)));
  const until = alarm.resolved ? ` to ${when(alarm.resolved)}` : "";
  card.append(make("div", { className: "what" }, `${alarm.resolved ? "" : "since "}${when(alarm.onset)}${until}`));
  const blamed = alarm.channels.slice(0, 3).map(({ name, share }) => `${name} ${Math.round(100 * share)} %`);
  if (alarm.channel) blamed.unshift(alarm.channel);
  if (blamed.length) card.append(make("div", { className: "what blame" }, blamed.join(", "), alarm.signal ? ` (${alarm.signal})` : ""));
  const facts = (alarm.readings ?? []).slice(0, 1).map(readingWords);
  if (alarm.partner && alarm.channels.length) facts.push(`${alarm.channels[0].name} and ${alarm.partner} stopped going together`);
  if (alarm.lasting) facts.push("ended because a lasting change became the new normal");
  if (facts.length) card.append(make("div", { className: "what" }, facts.join("; ")));
  if (alarm.reason) card.append(make("div", { className: "what" }, alarm.reason));
  const marks = [alarm.acknowledged && "acknowledged", alarm.normal && "marked as normal", alarm.fault && "marked as a fault"].filter(Boolean);
  const acts = make("div", { className: "acts" });
  if (!alarm.resolved && !alarm.acknowledged) acts.append(act(alarm, "acknowledge", "Acknowledge"));
  if (!silent && !alarm.normal && !alarm.fault) acts.append(act(alarm, "normal", "This was normal"), act(alarm, "fault", "This was a fault"));
  if (alarm.normal || alarm.fault) acts.append(act(alarm, "undo", "Undo"));
  if (marks.length) acts.append(make("small", {}, marks.join(", ")));
  card.append(acts);
  return card;
}

/** E.g. "flow 49.6, expected 31.0 to 35.0", as finely as the range asks for. */
function readingWords({ channel, value, low, high }) {
  const size = high - low || Math.abs(value - low) || 1;
  return `${channel} ${number(value, size)}, expected ${number(low, size)} to ${number(high, size)}`;
}

function act(alarm, mark, words) {
  const button = make("button", { type: "button" }, words);
  button.dataset.act = mark;
  button.onclick = async () => { button.disabled = true; if ((await post(`/api/alarms/${encodeURIComponent(alarm.alarm)}/${mark}`)).ok) await loadAlarms(); };
  return button;
}

/** Alarms of one incident in one card, its entities in the heading. */
function incidentCards(alarms) {
  const groups = new Map();
  for (const alarm of alarms) {
    const id = alarm.incident || alarm.alarm;
    if (!groups.has(id)) groups.set(id, []);
    groups.get(id).push(alarm);
  }
  return [...groups.values()].map((group) => {
    if (group.length === 1) return alarmCard(group[0]);
    const names = [...new Set(group.map((alarm) => alarm.entity || "source"))];
    const shown = names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
    const first = group.reduce((a, b) => (a.onset < b.onset ? a : b));
    const top = make("div", { className: "top" }, make("span", {}, `One incident, ${count(names.length, "entity", "entities")}: ${shown}`));
    return make("li", { className: "incident" }, top, make("div", { className: "what" }, `since ${when(first.onset)}`), make("ol", { className: "alarms" }, ...group.map(alarmCard)));
  });
}

function drawAlarms() {
  $("open").replaceChildren(...incidentCards([...state.open.values()]));
  $("history").replaceChildren(...[...state.history.values()].slice(0, 50).map(alarmCard));
  drawHeadline();
}

/** The number of open alarms, and of entities that cannot raise one yet. */
function drawHeadline() {
  const n = state.open.size, { learning = 0, fitting = 0, watching = 0 } = state.phases ?? {};
  document.title = n ? `(${n}) vace watch` : "vace watch";
  const young = learning + fitting;
  const rest = young ? `${count(young, "entity is", "entities are")} still learning and cannot raise alarms yet.` : "";
  let words = n ? `${count(n, "alarm is", "alarms are")} open.` : "No open alarms.";
  if (!n && state.phases === null) words = "…";
  else if (!n && !watching) words = young ? rest : "No rows have arrived yet.";
  else if (young) words += ` ${rest}`;
  $("headline").textContent = words;
}

async function loadAlarms() {
  const [open, history] = await Promise.all([get("/api/alarms?state=open"), get("/api/alarms?state=resolved&limit=50")]);
  state.open = new Map(open.map((alarm) => [alarm.alarm, alarm]));
  state.history = new Map(history.map((alarm) => [alarm.alarm, alarm]));
  drawAlarms();
}

async function loadStatus() {
  const { counts, entities, phases, problems, source } = await get("/api/status");
  state.phases = phases;
  drawHeadline();
  const facts = [count(entities, "entity", "entities"), ...Object.entries(phases).filter(([, n]) => n).map(([phase, n]) => `${n} ${phase}`),
    `source ${source}`, count(counts.rows, "row"), `${counts.unscored.toLocaleString("en-US")} without a score`, `${counts.late} late`];
  $("summary").replaceChildren(...facts.map((fact) => make("li", {}, fact)));
  const wrong = Object.entries(problems).map(([part, words]) => `${part}: ${words}`);
  $("problems").hidden = !wrong.length;
  $("problems").textContent = wrong.join("; ");
}

async function loadEntities() {
  const { total, entities } = await get(`/api/entities?limit=200&search=${encodeURIComponent(state.search)}`);
  $("entities").replaceChildren(...entities.map((entity) => {
    const name = make("button", { className: "link", type: "button" }, entity.name);
    name.onclick = () => choose(entity.name);
    const words = entity.alarms ? "alarm" : [entity.state, entity.model].filter(Boolean).join("; ");
    return make("li", entity.alarms ? { className: "firing" } : {}, name, make("span", {}, words));
  }));
  $("more").textContent = total > entities.length ? `${total - entities.length} more; use the search` : "";
}

async function choose(name) {
  state.chosen = name;
  await loadDetail();
  const { top } = $("chosen").getBoundingClientRect(); // where it can be seen, nothing moves
  if (top < 0 || top > innerHeight - 80) $("chosen").scrollIntoView({ block: "nearest" });
}

async function loadDetail() {
  if (state.chosen === null) return;
  const entity = await get(`/api/entity?name=${encodeURIComponent(state.chosen)}`);
  $("choose").hidden = true;
  $("shown").hidden = false;
  $("name").replaceChildren(entity.name);
  $("state").textContent = entity.idle ? `${entity.state}; on disk, no recent rows` : entity.state;
  const evident = entity.evidence.length > 0, { score, threshold } = entity;
  const now = evident ? entity.evidence[entity.evidence.length - 1][1] : score ?? null, limit = evident ? 1 : threshold ?? null;
  const size = Math.max(Math.abs(now ?? 0), Math.abs(limit ?? 0));
  $("measure").textContent = evident ? "Evidence relative to its limit" : "Score";
  $("now").textContent = now === null ? "" : `now ${number(now, size)}${limit === null ? "" : `, alarms above ${number(limit, size)}`}`;
  drawLine(evident ? entity.evidence : entity.scores, limit);
  drawCurves(entity.curves ?? []);
  $("channels").replaceChildren(...entity.channels.map(({ name, value, low, high }) => {
    const out = value !== null && low !== null && (value < low || value > high);
    const size = high !== null ? high - low || Math.abs(high) || 1 : Math.abs(value ?? 1);
    const expected = low === null ? "" : `expected ${number(low, size)} to ${number(high, size)}`;
    return make("li", out ? { className: "out" } : {}, make("span", {}, name), make("b", {}, value === null ? "no data" : number(value, size)), make("small", {}, expected));
  }));
}

/** A line over time with its limit; the scale is logarithmic where the values are far above it. */
function drawLine(points, limit) {
  const { context, width, height } = prepare($("score"));
  readColours();
  const known = points.filter(([, value]) => value !== null);
  if (known.length < 2) return;
  const from = points[0][0], to = points[points.length - 1][0], left = 44, bottom = 18;
  const most = Math.max(limit ?? -Infinity, ...known.map(([, value]) => value)), least = Math.min(0, ...known.map(([, value]) => value));
  const warp = most > 8 * (limit ?? Infinity) ? steep : (value) => value, high = warp(most), low = warp(least);
  const toY = (value) => 4 + (height - bottom - 4) * (1 - (warp(value) - low) / (high - low || 1));
  const scale = (width - left) / (to - from || 1);
  context.fillStyle = colours.soft;
  context.strokeStyle = colours.grid;
  for (const tick of warp === steep ? [0, 1, 10, 100, 1000].filter((value) => value <= most) : roundTicks(least, most, 3).ticks) {
    context.fillText(number(tick, warp === steep ? 100 : most - least), 0, toY(tick) + 4);
    context.beginPath(); context.moveTo(left, toY(tick)); context.lineTo(width, toY(tick)); context.stroke();
  }
  if (limit !== null) {
    context.save();
    context.strokeStyle = colours.event;
    context.setLineDash([5, 4]);
    context.beginPath(); context.moveTo(left, toY(limit)); context.lineTo(width, toY(limit)); context.stroke();
    context.restore();
  }
  for (const { at, label } of timeTicks(from, to, Math.max(2, width / 110))) context.fillText(label, Math.min(left + (at - from) * scale, width - context.measureText(label).width), height - 3);
  const curve = { x: points.map(([at]) => at - from), y: points.map(([, value]) => value ?? NaN), spacing: (to - from) / points.length };
  drawCurve(context, curve, left, scale, toY, { colour: colours.score });
}

/** Values and expected ranges of the suspects, then of the channels with the largest deviation. */
function drawCurves(curves) {
  while ($("curves").children.length > curves.length) $("curves").lastChild.remove();
  curves.forEach(({ name, suspect, points }, i) => {
    const item = $("curves").children[i] ?? $("curves").appendChild(make("li", {}, make("span", {}), make("canvas", { role: "img" })));
    const [label, canvas] = item.children;
    label.textContent = suspect ? `${name}, suspect` : name;
    canvas.setAttribute("aria-label", `${name} with its expected range`);
    const { context, width, height } = prepare(canvas), known = points.flatMap((point) => point.slice(1)).filter((value) => value !== null);
    if (points.length < 2 || !known.length) return;
    const from = points[0][0], to = points[points.length - 1][0], scale = width / (to - from || 1), left = 0;
    const least = Math.min(...known), most = Math.max(...known), toY = (value) => 4 + (height - 8) * ((most - value) / (most - least || 1));
    const line = (place) => ({ x: points.map(([at]) => at - from), y: points.map((point) => point[place] ?? NaN), spacing: (to - from) / points.length });
    const place = { left, width, top: 0, bottom: height, scale, toY };
    drawWithRange(context, line(1), { lower: line(2), upper: line(3) }, [[0, width]], place, { colour: colours.curve });
  });
}

/** At most one call at a time, and one more after it if another was requested meanwhile. */
function gently(load, pause) {
  let running = false, again = false;
  return async function call() {
    if (running) { again = true; return; }
    running = true;
    try { await load(); } catch (error) { $("link").textContent = String(error.message); }
    setTimeout(() => { running = false; if (again) { again = false; call(); } }, pause);
  };
}

const refresh = { alarms: gently(loadAlarms, 200), status: gently(loadStatus, 1000), entities: gently(loadEntities, 2000), detail: gently(loadDetail, 500) };

function listen() {
  const events = new EventSource("/api/events");
  events.onopen = () => { $("link").textContent = "live"; $("link").className = "tag on"; for (const load of Object.values(refresh)) load(); };
  events.onerror = () => { $("link").textContent = "disconnected, reconnecting"; $("link").className = "tag off"; };
  events.addEventListener("alarm", refresh.alarms);
  events.addEventListener("marked", refresh.alarms);
  events.addEventListener("status", () => { refresh.status(); refresh.entities(); });
  events.addEventListener("entity", (event) => { if (JSON.parse(event.data) === state.chosen) refresh.detail(); });
}

/** Remove a decommissioned entity, which would otherwise keep its "no data" alarm. */
async function remove() {
  const name = state.chosen;
  if (name === null || !confirm(`Remove ${name}? Its alarms are resolved; its state and its trained model are deleted.`)) return;
  const answer = await fetch(`/api/entity?name=${encodeURIComponent(name)}`, { method: "DELETE" });
  if (!answer.ok) { $("link").textContent = `${name} could not be removed: ${answer.status}`; return; }
  state.chosen = null;
  $("shown").hidden = true;
  $("choose").hidden = false;
  for (const load of Object.values(refresh)) load();
}

$("remove").addEventListener("click", remove);
$("search").addEventListener("input", (event) => { state.search = event.target.value; refresh.entities(); });
addEventListener("resize", refresh.detail);
addEventListener("hashchange", drawAlarms);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => { document.documentElement.dataset.theme = event.matches ? "dark" : "light"; refresh.detail(); });
listen();
