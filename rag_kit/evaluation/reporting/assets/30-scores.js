// The table of pipelines and metrics: mean, interval, coverage; what it took.

const scoreView = { turned: pipelines.length < 5 && metrics.length > 3, sort: null, direction: null };

const costs = [
  { key: "p50", format: number.seconds },
  { key: "p95", format: number.seconds },
  { key: "calls", format: number.count },
  { key: "tokens", format: number.count },
  { key: "money", format: number.money },
].filter((cost) => pipelines.some((pipeline) => typeof pipeline[cost.key] === "number"));

function intervalBar(metric, summary, color) {
  const place = (value) => 3 + (94 * (value - metric.low)) / (metric.high - metric.low || 1);
  const low = summary.low ?? summary.mean;
  const high = summary.high ?? summary.mean;
  return svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", style: { "--color": color } },
    svg("path", { class: "bar-scale", d: "M3 5H97" }),
    svg("path", { class: "bar-range", d: `M${place(low)} 5H${place(high) + 0.01}` }),
    svg("path", { class: "bar-mean", d: `M${place(summary.mean)} 1V9` }));
}

/** The means that no other pipeline beats; bold only where there is something to beat. */
function bestOf(metric) {
  const means = metric.summary.map((each) => (each ? each.mean : null)).filter((mean) => mean !== null);
  if (means.length < 2) return null;
  return metric.higher ? Math.max(...means) : Math.min(...means);
}

function coverage(summary) {
  const missing = ["undefined", "errors", "not_applicable", "missing"].filter((kind) => summary[kind]);
  const words = missing.map((kind) => t(`coverage_${kind}`, { n: summary[kind] })).join(", ");
  const label = t("coverage_of", { n: summary.n, total: summary.total }) + (words ? `: ${words}` : "");
  return el("span", { class: missing.length ? "coverage partial" : "coverage", title: label },
    el("span", { "aria-hidden": "true" }, `${summary.n} / ${summary.total}`),
    el("span", { class: "hidden" }, label),
    missing.map((kind) => el("span", { class: `gap gap-${kind}`, "aria-hidden": "true" },
      `${{ undefined: "∅", errors: "!", not_applicable: "–", missing: "…" }[kind]}\u2009${summary[kind]}`)));
}

function summaryCell(metric, pipeline) {
  const summary = metric.summary[pipeline.index];
  if (!summary) return el("td", { class: "value" }, el("span", { class: "none" }, t("not_measured")));
  if (summary.mean === null) {
    return el("td", { class: "value" }, el("span", { class: "line" }, el("span", { class: "mean none" }, "–")), coverage(summary),
      metric.why[pipeline.index] ? el("span", { class: "small muted why" }, iso(sentence(metric.why[pipeline.index]))) : null);
  }
  const best = summary.mean === bestOf(metric);
  return el("td", { class: best ? "value best" : "value" },
    el("span", { class: "line" },
      el("span", { class: "mean" }, number.score(summary.mean)),
      summary.low === null ? null : el("span", { class: "interval" }, `[${number.score(summary.low)}, ${number.score(summary.high)}]`)),
    intervalBar(metric, summary, pipeline.color),
    coverage(summary));
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

function uprightTable() {
  const mean = (pipeline, key) => {
    if (key === "name") return pipeline.name;
    const metric = metrics.find((each) => `m:${each.name}` === key);
    return metric ? (metric.summary[pipeline.index]?.mean ?? null) : (pipeline[key] ?? null);
  };
  return el("table", { class: "scores" },
    el("caption", { class: "hidden" }, t("scores")),
    el("thead", {}, el("tr", {},
      scoreHeader("name", t("pipeline"), { class: "sticky" }),
      metrics.map((metric) => scoreHeader(`m:${metric.name}`, metricLabel(metric))),
      costs.map((cost) => scoreHeader(cost.key, t(`cost_${cost.key}`))))),
    el("tbody", {}, sorted(pipelines, (pipeline) => mean(pipeline, scoreView.sort)).map((pipeline) =>
      el("tr", {}, el("th", { scope: "row", class: "sticky" }, pipelineName(pipeline), failures(pipeline)),
        metrics.map((metric) => summaryCell(metric, pipeline)),
        costs.map((cost) => costCell(cost, pipeline))))));
}

function turnedTable() {
  const mean = (metric, key) => (key === "name" ? metric.name : (metric.summary[Number(key.slice(2))]?.mean ?? null));
  return el("table", { class: "scores turned" },
    el("caption", { class: "hidden" }, t("scores")),
    el("thead", {}, el("tr", {},
      scoreHeader("name", t("metric"), { class: "sticky" }),
      pipelines.map((pipeline) => scoreHeader(`p:${pipeline.index}`, pipelineName(pipeline))))),
    el("tbody", {}, sorted(metrics, (metric) => mean(metric, scoreView.sort)).map((metric) =>
      el("tr", {}, el("th", { scope: "row", class: "sticky" }, metricLabel(metric), stageOf(metric)),
        pipelines.map((pipeline) => summaryCell(metric, pipeline))))),
    el("tbody", { class: "costs" }, costs.map((cost) =>
      el("tr", {}, el("th", { scope: "row", class: "sticky" }, t(`cost_${cost.key}`)),
        pipelines.map((pipeline) => costCell(cost, pipeline))))));
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
  const table = scoreView.turned ? turnedTable() : uprightTable();
  const notes = data.notes.length ? el("ul", { class: "small muted notes" }, data.notes.map((note) => el("li", {}, iso(sentence(note))))) : [];
  replace("scores-table", notes, el("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": t("scores") }, table));
}
