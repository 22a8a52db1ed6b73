// What each metric says of one answer, down to the statements and verdicts behind it.

function cellsView(run) {
  const measured = metrics.filter((metric) => run.cells[metric.index]);
  if (!measured.length) return null;
  return el("section", {}, el("h3", {}, t("judgements")),
    el("ul", { class: "cells" }, measured.map((metric) => cellView(metric, run.cells[metric.index]))));
}

function cellView(metric, cell) {
  const empty = cell.details === null || Object.keys(cell.details).length === 0;
  return el("li", { class: "cell" },
    el("div", { class: "cell-head" }, scoreMark(metric, cell), el("strong", {}, metricLabel(metric)),
      cell.status === "ok" ? null : el("span", { class: cell.status === "error" ? "small bad" : "small muted" }, t(`status_${cell.status}`))),
    cell.reason ? prose(sentence(cell.reason)) : null,
    empty ? null : fold(t("details"), tree(cell.details), Object.values(cell.details).some(isTable)));
}

function isTable(value) {
  return Array.isArray(value) && value.length > 0 && value.every((item) => item !== null && typeof item === "object" && !Array.isArray(item));
}

/** Plain data for people: lists of objects as tables, objects as terms, verdicts as signs. */
function tree(value, depth = 0) {
  if (value === null || value === undefined) return el("span", { class: "muted" }, "–");
  if (typeof value === "boolean") return verdict(value);
  if (typeof value === "number") return number.any(value);
  if (typeof value !== "object") return iso(value, { class: "prose" });
  if (depth > 5) return iso(JSON.stringify(value), { class: "prose" });
  if (isTable(value)) return detailTable(value, depth);
  if (Array.isArray(value)) return value.length ? el("ul", { class: "plain" }, value.map((item) => el("li", {}, tree(item, depth + 1)))) : el("span", { class: "muted" }, "–");
  return el("dl", { class: "plain" }, Object.entries(value).map(([key, item]) => [el("dt", {}, word("key", key)), el("dd", {}, entry(key, item, depth + 1))]));
}

function entry(key, value, depth) {
  return key === "kind" ? word("key", value) : tree(value, depth);
}

function verdict(yes) {
  return el("span", { class: yes ? "verdict good" : "verdict bad" }, icon(yes ? "check" : "cross"), t(yes ? "yes" : "no"));
}

function detailTable(list, depth) {
  const keys = [...new Set(list.flatMap((item) => Object.keys(item)))];
  const cell = (item, key) => {
    if (/verdict|attributed|supported/.test(key) && (item[key] === 0 || item[key] === 1)) return verdict(item[key] === 1);
    return entry(key, item[key], depth + 1);
  };
  return table(t("details"), "details", keys.map((key) => word("key", key)), list.map((item) => el("tr", {}, keys.map((key) => el("td", {}, cell(item, key))))));
}
