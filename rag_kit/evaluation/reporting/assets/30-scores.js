// The table of pipelines and metrics: mean, interval, coverage; what it took.

const scoreView = { turned: pipelines.length < 5 && metrics.length > 3, sort: null, direction: null };

const costs = [
  { key: "p50", format: number.seconds },
  { key: "p95", format: number.seconds },
  { key: "calls", format: number.count },
  { key: "tokens", format: number.count },
  { key: "money", format: number.money },
].filter((cost) => pipelines.some((pipeline) => typeof pipeline[cost.key] === "number"));

/** The means that no other pipeline beats; bold only where there is something to beat. */
function bestOf(metric) {
  const means = metric.summary.map((each) => (each ? each.mean : null)).filter((mean) => mean !== null);
  if (means.length < 2) return null;
  return metric.higher ? Math.max(...means) : Math.min(...means);
}

function coverage(summary) {
  const missing = ["undefined", "not_applicable", "missing"].filter((kind) => summary[kind]);
  const words = missing.map((kind) => t(`coverage_${kind}`, { n: summary[kind] })).join(", ");
  const label = t("coverage_of", { n: summary.n, total: summary.total }) + (words ? `: ${words}` : "");
  return el("span", { class: missing.length ? "coverage partial" : "coverage", title: label },
    el("span", { "aria-hidden": "true" }, `${summary.n} / ${summary.total}`),
    el("span", { class: "hidden" }, label),
    missing.map((kind) => el("span", { "aria-hidden": "true" },
      `${{ undefined: "∅", not_applicable: "–", missing: "…" }[kind]}\u2009${summary[kind]}`)));
}

/** In red beside the mean: on how many questions the value could not be computed. */
function failedCells(summary) {
  return summary.errors ? el("strong", { class: "bad small" }, t("failed_cells", { n: summary.errors, total: summary.total })) : null;
}

function intervalText(summary) {
  return summary.low === null ? null : el("span", { class: "interval" }, `[${number.score(summary.low)}, ${number.score(summary.high)}]`);
}

function summaryCell(metric, pipeline) {
  const summary = metric.summary[pipeline.index];
  if (!summary) return el("td", { class: "value" }, el("span", { class: "none" }, t("not_measured")));
  const why = metric.why[pipeline.index];
  const place = (value) => (value - metric.low) / (metric.high - metric.low || 1);
  return el("td", { class: summary.mean !== null && summary.mean === bestOf(metric) ? "value best" : "value" },
    el("span", { class: "line" }, el("span", { class: summary.mean === null ? "mean none" : "mean" }, number.score(summary.mean)), intervalText(summary), failedCells(summary)),
    summary.mean === null ? null : bar(pipeline.color, place(summary.low ?? summary.mean), place(summary.high ?? summary.mean), place(summary.mean)),
    coverage(summary),
    why ? el("span", { class: "small muted why" }, iso(sentence(why))) : null);
}

function costCell(cost, pipeline) {
  return el("td", { class: "value cost" }, el("span", { class: "mean" }, cost.format(pipeline[cost.key])));
}

function metricLabel(metric) {
  return el("span", { class: "metric" }, broken(metric.name), metric.higher ? null : el("span", { class: "lower", title: t("lower_is_better") }, "↓"));
}

function sortScores(key) {
  const first = key === "name" || costs.some((cost) => cost.key === key) ? "ascending" : "descending";
  const other = first === "ascending" ? "descending" : "ascending";
  if (scoreView.sort !== key) Object.assign(scoreView, { sort: key, direction: first });
  else if (scoreView.direction === first) scoreView.direction = other;
  else Object.assign(scoreView, { sort: null, direction: null });
  renderScores();
  const again = document.querySelector(`#scores-table th[data-key="${CSS.escape(key)}"] button`);
  if (again) again.focus();
}

function sorted(list, value) {
  if (scoreView.sort === null) return list;
  return [...list].sort((a, b) => compareValues(value(a), value(b), scoreView.direction));
}

function scoreHeader(key, label, attributes = {}) {
  return sortHeader(label, scoreView.sort === key ? scoreView.direction : null, () => sortScores(key), { "data-key": key, ...attributes });
}

/** What stands in a row or column: a pipeline, a metric, or a cost; the table may be turned. */
const shownPipelines = () => pipelines.map((pipeline) => ({ key: `p:${pipeline.index}`, name: pipeline.name, label: () => pipeline.name, pipeline,
  head: (turned) => (turned ? pipelineName(pipeline) : [pipelineName(pipeline), failures(pipeline)]) }));
const shownValues = () => [
  ...metrics.map((metric) => ({ key: `m:${metric.index}`, name: metric.name, label: () => metric.name, head: (turned) => (turned ? [metricLabel(metric), stageOf(metric)] : metricLabel(metric)),
    cell: (pipeline) => summaryCell(metric, pipeline), value: (pipeline) => metric.summary[pipeline.index]?.mean ?? null })),
  ...costs.map((cost) => ({ key: cost.key, name: "", label: () => t(`cost_${cost.key}`), head: () => t(`cost_${cost.key}`), cell: (pipeline) => costCell(cost, pipeline), value: (pipeline) => pipeline[cost.key] ?? null })),
];

function scoresTable(turned) {
  const [rows, columns] = turned ? [shownValues(), shownPipelines()] : [shownPipelines(), shownValues()];
  const by = columns.find((column) => column.key === scoreView.sort);
  const key = (row) => (scoreView.sort === "name" ? row.name : turned ? row.value(by.pipeline) : by.value(row.pipeline));
  const metricRows = turned ? rows.filter((row) => row.key.startsWith("m:")) : rows;
  const line = (row) => el("tr", {}, el("th", { scope: "row", class: "sticky" }, row.head(turned)),
    columns.map((column) => labelled(turned ? row.cell(column.pipeline) : column.cell(row.pipeline), column.label())));
  return el("table", { class: "scores" },
    el("caption", { class: "hidden" }, t("scores")),
    el("thead", {}, el("tr", {}, scoreHeader("name", t(turned ? "metric" : "pipeline"), { class: "sticky" }),
      columns.map((column) => scoreHeader(column.key, column.head(turned))))),
    el("tbody", {}, sorted(metricRows, key).map(line)),
    turned ? el("tbody", { class: "costs" }, rows.filter((row) => !row.key.startsWith("m:")).map(line)) : null);
}

function stageOf(metric) {
  return metric.stage ? el("span", { class: "small" }, t(`stage_${metric.stage}`)) : null;
}

function failures(pipeline) {
  return pipeline.failed ? el("span", { class: "small bad" }, t("failed_questions", { n: pipeline.failed })) : null;
}

function renderScores() {
  const turn = el("button", { type: "button", class: "quiet", onclick: () => {
    Object.assign(scoreView, { turned: !scoreView.turned, sort: null, direction: null });
    renderScores();
    document.querySelector("#scores-tools button").focus();
  } }, icon("turn"), t("turn"));
  replace("scores-tools", pipelines.length > 1 ? turn : []);
  const table = scoresTable(scoreView.turned);
  const notes = data.notes.length ? el("ul", { class: "small muted notes" }, data.notes.map((note) => el("li", {}, iso(sentence(note))))) : [];
  replace("scores-table", notes, el("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": t("scores") }, table));
}
