// The filter and the table of questions, which shows so many rows and a button for more.

const STEP = 100;
const rows = { shown: STEP, active: 0 };

function renderQuestions() {
  if (!document.getElementById("questions-filter")) {
    replace("questions-body", el("div", { id: "questions-filter", class: "filter", role: "search" }),
      el("div", { class: "count" }, el("p", { id: "questions-count", role: "status" }), el("div", { id: "questions-clear" })),
      el("div", { id: "questions-table" }));
  }
  document.getElementById("questions-filter").setAttribute("aria-label", t("questions"));
  renderFilter();
  refreshQuestions();
}

/** Go to the questions that pass a filter, with the metrics of a pipeline. */
function showQuestions(filter, pipeline = null) {
  view.filter = { ...structuredClone(everything), ...filter };
  if (pipeline !== null) Object.assign(view, { columns: `p:${pipeline}`, sort: null, direction: null });
  renderQuestions();
  document.getElementById("questions").scrollIntoView();
  document.querySelector("#questions-clear button").focus({ preventScroll: true });
}

function renderFilter() {
  const set = (name) => (value) => {
    view.filter[name] = value;
    refreshQuestions();
  };
  const byPipeline = pipelines.map((pipeline) => [`p:${pipeline.index}`, pipeline.name]);
  const byMetric = metrics.map((metric) => [`m:${metric.index}`, metric.name]);
  const columns = pipelines.length < 2 ? null : choose(t("columns"), { [t("columns_pipeline")]: byPipeline, [t("columns_metric")]: byMetric },
    view.columns, (value) => {
      Object.assign(view, { columns: value, sort: null, direction: null });
      renderQuestions();
      document.querySelector("#questions-filter select").focus();
    });
  const search = el("input", { type: "search", value: view.filter.text, placeholder: t("search_hint"), oninput: (event) => set("text")(event.target.value) });
  replace("questions-filter",
    columns,
    el("label", { class: "field wide" }, el("span", {}, t("search")), search),
    choose(t("state"), [["", t("any")], ...Object.keys(statusTests).map((name) => [name, t(`filter_${name}`)])], view.filter.status, set("status")),
    tagValues.map(([key, values]) =>
      choose(tagName(key), [["", t("any")], ...[...values].map(([value, n]) => [value, `${partName(value)} (${n})`])], view.filter.tags[key] ?? "",
        (value) => {
          view.filter.tags[key] = value;
          refreshQuestions();
        })),
    causes.length ? choose(t("cause"), [["", t("any")], ...causes.map(([code, label]) => [code, sentence(label)])], view.filter.cause, set("cause")) : null);
}

/** The name of a tag, and of one of its values, as a text: a label of a field takes no elements. */
const tagName = (key) => texts[state.language][`tag_${key}`] ?? key;
const partName = (value) => texts[state.language][`part_${value}`] ?? value;

function refreshQuestions() {
  chooseQuestions();
  Object.assign(rows, { shown: STEP, active: 0 });
  const counted = view.shown.length === data.questions.length ? t("questions_all", { n: data.questions.length })
    : t("questions_some", { n: view.shown.length, total: data.questions.length });
  const clear = el("button", { type: "button", class: "quiet", onclick: () => {
    view.filter = structuredClone(everything);
    renderQuestions();
    document.querySelector("#questions-filter input").focus();
  } }, icon("cross"), t("clear"));
  replace("questions-count", view.filter.only ? `${counted}: ${view.filter.only.label}` : counted);
  replace("questions-clear", filterIsSet() ? clear : []);
  renderRows();
}

function renderRows() {
  const count = Math.min(rows.shown, view.shown.length);
  const list = el("table", { class: "questions" },
    el("caption", { class: "hidden" }, t("questions")),
    el("thead", {}, questionHeader(columnsOf(view.columns))),
    el("tbody", { onkeydown: moveInRows }, view.shown.slice(0, count).map((_, place) => questionRow(place))));
  replace("questions-table", el("div", { class: "scroll", id: "rows", role: "region", "aria-label": t("questions"), tabindex: "0" }, list,
    count ? null : el("p", { class: "empty" }, t("nothing_found")),
    count < view.shown.length ? el("button", { type: "button", class: "quiet", onclick: () => {
      rows.shown += STEP;
      renderRows();
      focusRow(count);
    } }, t("failed_more", { n: view.shown.length - count })) : null));
}

function questionHeader(columns) {
  const header = (key, label) => {
    const direction = view.sort === key ? view.direction : null;
    const sign = direction ? icon(direction === "ascending" ? "up" : "down") : el("span", { class: "icon" });
    return el("th", { scope: "col", class: "number", "aria-sort": direction ?? "none", "data-key": key },
      el("button", { type: "button", class: "sort", onclick: () => sortQuestions(key) }, el("span", {}, label), sign));
  };
  const byPipeline = focusPipeline() !== null;
  return el("tr", {},
    el("th", { scope: "col", class: "question" }, t("question")),
    columns.map((column, index) => header(`c:${index}`, byPipeline ? metricLabel(metrics[column.metric]) : pipelineName(pipelines[column.pipeline]))),
    causes.length && byPipeline ? el("th", { scope: "col" }, t("cause")) : null,
    byPipeline ? header("seconds", t("time")) : null,
    el("th", { scope: "col" }, t("id")));
}

function sortQuestions(key) {
  const metric = key.startsWith("c:") ? metrics[columnsOf(view.columns)[Number(key.slice(2))].metric] : null;
  // The first click brings up what needs looking at: the lowest scores, the slowest questions.
  const first = key === "seconds" || (metric && !metric.higher) ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  if (view.sort !== key) Object.assign(view, { sort: key, direction: first });
  else if (view.direction === first) view.direction = other;
  else Object.assign(view, { sort: null, direction: null });
  refreshQuestions();
  document.querySelector(`#rows th[data-key="${CSS.escape(key)}"] button`).focus();
}

function questionRow(place) {
  const question = data.questions[view.shown[place]];
  const focus = focusPipeline();
  const run = question.runs[focus ?? 0];
  const failed = watched().some((pipeline) => question.runs[pipeline]?.error);
  return el("tr", { "data-place": place, onclick: () => openQuestion(place) },
    el("th", { scope: "row", class: "question" },
      el("button", { type: "button", class: "open", tabindex: place === rows.active ? "0" : "-1", title: question.question,
        "aria-haspopup": "dialog" },
        failed ? [icon("warn"), el("span", { class: "hidden" }, t("filter_error"))] : null,
        iso(question.question))),
    columnsOf(view.columns).map(({ pipeline, metric }) => el("td", { class: "number" }, scoreMark(metrics[metric], cellOf(question, pipeline, metric)))),
    causes.length && focus !== null ? el("td", { class: "cause" }, causeLabel(run) ?? "–") : null,
    focus !== null ? el("td", { class: "number" }, number.seconds(run?.seconds)) : null,
    el("td", { class: "id" }, iso(question.id)));
}

/** Arrow keys, Page Up and Down, Home and End move through the rows; only one of them is a stop of the Tab key. */
function moveInRows(event) {
  const place = Number(event.target.closest("tr")?.dataset.place);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || Number.isNaN(place) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  focusRow(Math.min(view.shown.length - 1, Math.max(0, place + steps[event.key])));
}

function focusRow(place) {
  const button = (at) => document.querySelector(`#rows tr[data-place="${at}"] button`);
  if (place >= rows.shown) {
    rows.shown = place + 1;
    renderRows();
  }
  button(rows.active)?.setAttribute("tabindex", "-1");
  rows.active = place;
  button(place)?.setAttribute("tabindex", "0");
  button(place)?.focus();
}
