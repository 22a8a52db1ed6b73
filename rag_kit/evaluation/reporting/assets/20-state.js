// What is shown: the data of the page, the language. Nothing is kept outside the page.

/** The data as it stands in the file: JSON, gzipped, in base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const data = await unpacked(document.getElementById("data").textContent);
const texts = JSON.parse(document.getElementById("texts").textContent);

const state = { language: data.language };

/** The text of the interface in the language shown: t(key, {n: 3}). "one|many" is chosen by n. */
function t(key, values = {}) {
  const table = texts[state.language];
  let text = Object.hasOwn(table, key) ? table[key] : key;
  if (text.includes("|")) text = text.split("|")[values.n === 1 ? 0 : 1];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}

/** A sentence of the kit in the language shown; what a judge or a user wrote as it is. */
function sentence(text) {
  return state.language === "zh" && Object.hasOwn(data.chinese, text) ? data.chinese[text] : text;
}

/** The text of the interface for a word of the data; the word itself where there is none. */
function word(prefix, value) {
  const key = `${prefix}_${value}`;
  return Object.hasOwn(texts[state.language], key) ? t(key) : iso(value);
}

const pipelines = data.pipelines.map((pipeline, index) => ({ ...pipeline, index }));
const metrics = data.metrics.map((metric, index) => ({ ...metric, index }));

function pipelineName(pipeline) {
  const color = `swatch s${(pipeline.index % 8) + 1}`; // that of the plots
  return el("span", { class: "pipeline" }, el("span", { class: color, "aria-hidden": "true" }), iso(pipeline.name));
}

/** The cell of one question, pipeline and metric; null where that pipeline was not asked. */
function cellOf(question, pipeline, metric) {
  const run = question.runs[pipeline];
  return run ? run.cells[metric] : null;
}

/** Where a value stands on the scale of its metric, 0 to 1; 1 is good. */
function share(metric, value) {
  const place = Math.min(1, Math.max(0, (value - metric.low) / (metric.high - metric.low || 1)));
  return metric.higher ? place : 1 - place;
}

const statusSign = { undefined: "∅", error: "!", not_applicable: "–" };

/** The number of a cell, tinted by how good it is, or the sign of why there is none. */
function scoreMark(metric, cell) {
  if (!cell) return el("span", { class: "score none", title: t("not_asked") }, "·");
  if (cell.status === "ok") {
    return el("span", { class: "score", style: { "--share": share(metric, cell.value) } }, number.short(cell.value));
  }
  const name = t(`status_${cell.status}`);
  return el("span", { class: `score ${cell.status}`, title: cell.reason ? `${name}: ${sentence(cell.reason)}` : name },
    el("span", { "aria-hidden": "true" }, statusSign[cell.status]), el("span", { class: "hidden" }, name));
}

/** The map below a key of a map, made where there is none. */
function inMap(map, key) {
  if (!map.has(key)) map.set(key, new Map());
  return map.get(key);
}
