// Wheel, drag, touch and keys, turned into moves of the view.

const CLICK_SLACK = 4; // pixels a pointer may move and still have clicked
const SCROLL_PAUSE = 300; // ms after the page last scrolled before the wheel zooms

/**
 * Let people move `view` on `element`. `plot()` gives {left, width} of the curves in page pixels;
 * `clicked(place)`, `hovered(clientX or null)` and `marking(a, b, done)` tell what else happened.
 */
function listen(element, view, plot, { clicked, hovered, marking }) {
  const fingers = new Map();
  let press = null; // where a drag began
  let scrolled = -Infinity;
  addEventListener("scroll", () => { scrolled = performance.now(); }, { passive: true });

  const place = (x) => {
    const { left, width } = plot();
    return view.from + ((x - left) / width) * view.span;
  };

  element.addEventListener("wheel", (event) => {
    // A page being scrolled past the curves must not start zooming under the reader's hand.
    if (performance.now() - scrolled < SCROLL_PAUSE) { scrolled = performance.now(); return; }
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) {
      if (view.whole) return;
      event.preventDefault();
      view.move((sideways / plot().width) * view.span);
    } else {
      if (event.deltaY > 0 && view.whole) return; // nothing left to zoom out: let the page scroll
      event.preventDefault();
      const notch = event.deltaMode === 1 ? 30 : 1;
      view.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * notch)) * 0.0035), place(event.clientX));
    }
  }, { passive: false });

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, event.clientX);
    element.setPointerCapture(event.pointerId);
    press = { x: event.clientX, from: view.from, to: view.to, mark: event.shiftKey, moved: false };
    if (fingers.size === 2) press = { ...press, pinch: pinchOf(fingers), moved: true };
  });

  element.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") hovered(event.clientX);
    if (!fingers.has(event.pointerId) || !press) return;
    fingers.set(event.pointerId, event.clientX);
    if (press.pinch && fingers.size === 2) return pinch();
    if (Math.abs(event.clientX - press.x) > CLICK_SLACK) press.moved = true;
    if (!press.moved) return;
    if (press.mark) return marking(place(press.x), place(event.clientX), false);
    element.classList.add("dragging");
    const shift = ((press.x - event.clientX) / plot().width) * (press.to - press.from);
    view.show(press.from + shift, press.to + shift);
  });

  const release = (event) => {
    if (!fingers.delete(event.pointerId) || !press) return;
    const { moved, mark, x } = press;
    element.classList.remove("dragging");
    press = fingers.size ? { x: [...fingers.values()][0], from: view.from, to: view.to, mark: false, moved: true } : null;
    if (event.type === "pointercancel") return;
    if (mark && moved) marking(place(x), place(event.clientX), true);
    else if (!moved) {
      if (event.pointerType === "touch") hovered(event.clientX);
      clicked(place(event.clientX));
    }
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", () => hovered(null));
  element.addEventListener("dblclick", (event) => {
    const around = place(event.clientX), span = view.span / 3;
    view.glide(around - (around - view.from) / 3, around - (around - view.from) / 3 + span);
  });

  function pinch() {
    const now = pinchOf(fingers), { left, width } = plot();
    const span = (press.to - press.from) * (press.pinch.apart / Math.max(now.apart, 20));
    const held = press.from + ((press.pinch.middle - left) / width) * (press.to - press.from);
    const from = held - ((now.middle - left) / width) * span;
    view.show(from, from + span);
  }
}

function pinchOf(fingers) {
  const [a, b] = [...fingers.values()];
  return { middle: (a + b) / 2, apart: Math.max(Math.abs(a - b), 20) };
}

/** Keys that work wherever no text is being typed. */
function listenToKeys(view, { stack, step }) {
  const actions = {
    "+": () => view.zoom(0.6), "=": () => view.zoom(0.6), "-": () => view.zoom(1 / 0.6), "−": () => view.zoom(1 / 0.6),
    "0": () => view.glide(view.first, view.last), n: () => step(1), p: () => step(-1),
    ArrowLeft: () => view.move(-0.15 * view.span), ArrowRight: () => view.move(0.15 * view.span),
  };
  const onCurves = {
    Home: () => view.show(view.first, view.first + view.span), End: () => view.show(view.last - view.span, view.last),
    ArrowUp: () => view.zoom(0.6), ArrowDown: () => view.zoom(1 / 0.6),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, pre")) return;
    const action = actions[event.key] ?? (stack.contains(event.target) ? onCurves[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
}
