// Which questions are shown, and in which order.

const everything = { text: "", status: "", tags: {}, cause: "", only: null };
const view = { columns: "p:0", filter: structuredClone(everything), sort: null, direction: null, shown: [] };

/** The columns of values: the metrics of one pipeline, or one metric for all pipelines. */
function columnsOf(columns) {
  const index = Number(columns.slice(2));
  return columns.startsWith("p:")
    ? metrics.map((metric) => ({ pipeline: index, metric: metric.index }))
    : pipelines.map((pipeline) => ({ pipeline: pipeline.index, metric: index }));
}

function focusPipeline() {
  return view.columns.startsWith("p:") ? Number(view.columns.slice(2)) : null;
}

/** Pipelines that a filter on scores and causes looks at. */
function watched() {
  const focus = focusPipeline();
  return focus === null ? pipelines.map((pipeline) => pipeline.index) : [focus];
}

const tagValues = (() => {
  const found = new Map();
  for (const question of data.questions) {
    for (const [key, value] of Object.entries(question.tags)) {
      const values = inMap(found, key);
      values.set(value, (values.get(value) ?? 0) + 1);
    }
  }
  // A tag that differs for every question is no way to group them.
  return [...found].filter(([, values]) => values.size > 1 && values.size <= 40).slice(0, 6);
})();

const causes = (() => {
  const found = new Map();
  for (const question of data.questions) {
    for (const run of question.runs) if (run?.diagnosis?.cause) found.set(run.diagnosis.cause, data.cases[run.diagnosis.cause].title);
  }
  return [...found];
})();

const searchTexts = data.questions.map((question) =>
  [question.id, question.question, question.reference || "", ...question.runs.map((run) => run?.answer ?? "")].join("\n").toLowerCase());

const statusTests = {
  error: (question) => eachCell(question).some((cell) => cell.status === "error") || watched().some((p) => question.runs[p]?.error),
  undefined: (question) => eachCell(question).some((cell) => cell.status === "undefined"),
  flagged: (question) => watched().some((p) => question.runs[p]?.status === "flagged"),
  declined: (question) => watched().some((p) => question.runs[p]?.status === "declined"),
};

function eachCell(question) {
  return columnsOf(view.columns).map(({ pipeline, metric }) => cellOf(question, pipeline, metric)).filter(Boolean);
}

function passes(question, index) {
  const { text, status, tags, cause, only } = view.filter;
  if (only && !only.ids.has(question.id)) return false;
  if (text && !text.toLowerCase().split(/\s+/).every((word) => searchTexts[index].includes(word))) return false;
  if (status && !statusTests[status](question)) return false;
  for (const [key, value] of Object.entries(tags)) if (value !== "" && question.tags[key] !== value) return false;
  return !cause || watched().some((pipeline) => question.runs[pipeline]?.diagnosis?.cause === cause);
}

function sortValue(question, index) {
  const key = view.sort;
  if (key === "seconds") return question.runs[focusPipeline() ?? 0]?.seconds ?? null;
  const column = columnsOf(view.columns)[Number(key.slice(2))];
  return column ? cellOf(question, column.pipeline, column.metric)?.value ?? null : index;
}

function causeLabel(run) {
  const cause = run?.diagnosis?.cause;
  return cause ? sentence(data.cases[cause].title) : null;
}

/** Numbers of the questions to show, in order. */
function chooseQuestions() {
  const shown = [];
  data.questions.forEach((question, index) => passes(question, index) && shown.push(index));
  if (view.sort !== null) {
    const keys = new Map(shown.map((index) => [index, sortValue(data.questions[index], index)]));
    const sign = view.direction === "descending" ? -1 : 1;
    const compare = (a, b) => (a === null || b === null ? (a === null) - (b === null) : sign * (a - b)); // no value comes last both ways
    shown.sort((a, b) => compare(keys.get(a), keys.get(b)) || a - b);
  }
  view.shown = shown;
}

function filterIsSet() {
  const { text, status, tags, cause, only } = view.filter;
  return Boolean(text || status || cause || only || Object.values(tags).some((value) => value !== ""));
}
