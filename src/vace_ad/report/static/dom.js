// Elements and canvases. Text from data only ever goes in as text, never as markup.

const $ = (id) => document.getElementById(id);

/** Make an element: `set` holds properties and attributes, `inside` text or elements. */
function make(tag, set = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(set)) {
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

const TAIL = 14; // characters at the end of a long name that are always shown

/** A name that, where it does not fit, loses its middle: names often differ at the end only. */
function named(tag, name) {
  const element = make(tag, { className: "name", title: name });
  const cut = name.length > 2 * TAIL ? name.length - TAIL : name.length;
  element.append(make("span", { textContent: name.slice(0, cut) }));
  if (cut < name.length) element.append(make("span", { className: "tail", textContent: name.slice(cut) }));
  return element;
}

/** Fit a canvas to its place on the page; returns its context, one unit being one CSS pixel. */
function prepare(canvas) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  return { context, width, height };
}

const colours = {};
/** Read the colours of the style sheet, which differ between light and dark. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "soft", "faint", "line", "grid", "accent", "curve", "score", "event", "event-fill",
    "event-strong", "none", "none-fill", "train", "train-fill", "band", "band-line", "signal-0", "signal-1", "signal-2", "signal-3", "signal-4", "signal-5"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}
