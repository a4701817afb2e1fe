// Files made of what is on the page: the events as CSV, the curves as a picture.

function wireDownloads(doc, list, timeline) {
  const name = doc.file.replace(/\.\w{1,8}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "report";
  $("csv").addEventListener("click", () => save(new Blob([eventsAsCsv(doc, list)], { type: "text/csv" }), `${name}-events.csv`));
  $("csv").hidden = !doc.events.length && !doc.nearly.length;
  $("png").addEventListener("click", () => curvesAsPicture(doc, timeline).toBlob((blob) => save(blob, `${name}.png`)));
}

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The events that the filter lets through, then the near misses. */
function eventsAsCsv(doc, list) {
  const names = new Map(doc.series.map((series) => [series.column, series.name]));
  const head = ["kind", "first_row", "end_row", "from", "to", "lasts", "severity", "in_normal_operation", "suspects", "peak"];
  const rows = [...list.visible, ...doc.nearly].map((event) => [
    event.near ? "near miss" : event.kind, event.start, event.end, event.from, event.to, event.lasts, event.severity ?? "", event.rarity,
    event.blame.map(({ column, share }) => `${names.get(column)} ${(100 * share).toFixed(0)}%`).join("; "),
    event.blame.map(({ reading }) => reading).filter(Boolean).join("; "),
  ]);
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A cell that no spreadsheet runs as a formula. */
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The panels as they stand, one below the other, with their names. */
function curvesAsPicture(doc, timeline) {
  const parts = [...timeline.panels.map((panel) => [panel.element.querySelector("b").textContent, panel.canvas]), ["", timeline.axis]];
  const ratio = timeline.axis.width / Math.max(1, timeline.axis.clientWidth), title = 20 * ratio, edge = 12 * ratio;
  const canvas = make("canvas", { width: timeline.axis.width + 2 * edge });
  canvas.height = 2 * edge + 1.5 * title + parts.reduce((sum, [name, part]) => sum + part.height + (name ? title : 0), 0);
  const context = canvas.getContext("2d");
  context.fillStyle = colours.card;
  context.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(context, { fillStyle: colours.ink, textBaseline: "middle", font: `600 ${12.5 * ratio}px system-ui, sans-serif` });
  context.fillText(`${doc.file}, ${$("range").textContent}`, edge, edge + title / 2);
  let y = edge + 1.5 * title;
  for (const [name, part] of parts) {
    if (name) { context.fillText(name, edge + gutter() * ratio, y + title / 2); y += title; }
    if (part.height && part.width) context.drawImage(part, edge, y);
    y += part.height;
  }
  return canvas;
}
