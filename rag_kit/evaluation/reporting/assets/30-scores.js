// The table of pipelines and metrics: mean, interval, coverage; what it took.

const costs = [
  { key: "p50_seconds", format: number.seconds },
  { key: "p95_seconds", format: number.seconds },
  { key: "calls", format: number.count },
  { key: "tokens", format: number.count },
  { key: "money", format: number.money },
].filter((cost) => pipelines.some((pipeline) => typeof pipeline[cost.key] === "number"));

/** The means that no other pipeline beats, of those with about as many questions; bold only where there is something to beat. */
function bestOf(metric) {
  const means = metric.summary.map((each, at) => (each && !metric.partial[at] ? each.mean : null)).filter((mean) => mean !== null);
  if (means.length < 2) return null;
  return metric.higher ? Math.max(...means) : Math.min(...means);
}

/** On how many questions a mean stands, and why the others have no value. */
function coverage(summary) {
  const missing = ["undefined", "not_applicable", "missing"].filter((kind) => summary[kind]).map((kind) => t(`coverage_${kind}`, { n: summary[kind] }));
  return el("span", { class: "small muted" }, [`${summary.n} / ${summary.total}`, ...missing].join(" · "));
}

/** In red beside the mean: on how many questions the value could not be computed. */
function failedCells(summary) {
  return summary.errors ? el("strong", { class: "bad small" }, t("failed_cells", { n: summary.errors, total: summary.total })) : null;
}

function intervalText({ low, high }, format = number.score) {
  return low === null ? null : el("span", { class: "interval small muted" }, `[${format(low)}, ${format(high)}]`);
}

/** What labels by people make of a mean or a difference; `format` writes one of its numbers. */
function labelledText({ labelled }, format = number.score) {
  if (!labelled) return null;
  const [mean, low, high] = [labelled.mean, labelled.low, labelled.high].map(format);
  return el("strong", { class: "small block" }, t("with_labels", { n: labelled.n, mean, low, high }));
}

function summaryCell(metric, pipeline) {
  const summary = metric.summary[pipeline.index];
  if (!summary) return el("td", { class: "value" }, el("span", { class: "none" }, t("not_measured")));
  const why = metric.why[pipeline.index];
  return el("td", { class: summary.mean !== null && !metric.partial[pipeline.index] && summary.mean === bestOf(metric) ? "value best" : "value" },
    el("span", { class: "line" }, el("span", { class: summary.mean === null ? "mean none" : "mean" }, number.score(summary.mean)), intervalText(summary), failedCells(summary)),
    labelledText(summary), coverage(summary),
    why ? el("span", { class: "small muted why" }, iso(sentence(why))) : null);
}

function metricLabel(metric) {
  return el("span", { class: "metric" }, iso(metric.name), metric.higher ? null : el("span", { title: t("lower_is_better") }, "↓"));
}

function scoresTable() {
  const line = (head, cell) => el("tr", {}, el("th", { scope: "row", class: "sticky" }, head), pipelines.map((pipeline) => labelled(cell(pipeline), pipeline.name)));
  const failed = (pipeline) => (pipeline.failed ? el("span", { class: "small bad block" }, t("failed_questions", { n: pipeline.failed })) : null);
  return table(t("scores"), "scores", [el("th", { scope: "col", class: "sticky" }, t("metric")), ...pipelines.map((pipeline) => [pipelineName(pipeline), failed(pipeline)])],
    metrics.map((metric) => line([metricLabel(metric), ...underMetric(metric)], (pipeline) => summaryCell(metric, pipeline))),
    costs.map((cost) => line(t(`cost_${cost.key}`), (pipeline) => el("td", { class: "value cost" }, el("span", { class: "mean" }, cost.format(pipeline[cost.key]))))));
}

/** The stage that a metric looks at, and with which prompts the judge was asked: those of Ragas, adapted ones, rag_kit's. */
function underMetric(metric) {
  return [metric.stage ? el("span", { class: "small" }, t(`stage_${metric.stage}`)) : null,
    ...Object.entries(metric.prompts).map(([kind, n]) => el("span", { class: "small muted block" }, t(`prompts_${kind}`, { n })))];
}

function renderScores() {
  const notes = data.notes.length ? el("ul", { class: "small muted" }, data.notes.map((note) => el("li", {}, iso(sentence(note))))) : [];
  replace("scores-body", notes, scoresTable());
}
