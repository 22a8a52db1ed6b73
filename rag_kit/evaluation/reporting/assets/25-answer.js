// The first screen: which pipeline is best, what became of the questions, how sure that is, why answers fail, what to change.

function renderAnswer() {
  const { best, metric } = data.answer;
  const head = best === null ? el("p", { class: "headline" }, t("best_none")) : [bestLine(pipelines[best]), byHowMuch(metrics[metric].summary[best], metrics[metric])];
  replace("answer-body", el("div", { class: "cards" }, el("div", { class: "verdict-lines" }, head), outcomesTable()),
    best === null ? [] : el("div", { class: "cards" }, sureCard(), whyCard(), changeCard()));
}

const isPartial = ({ pipeline }) => metrics[data.answer.metric].partial[pipeline];
const isLevel = ({ test }) => Boolean(test) && !test.better && Math.abs(test.difference) < 0.0005;

function bestLine(pipeline) {
  const tests = data.answer.tests.filter((each) => !isPartial(each));
  const level = tests.filter(isLevel).length;
  const key = !tests.length ? "best_alone" : level ? "best_level" : tests.every(({ test }) => test?.better) ? "best_clear"
    : tests.some(({ test }) => test) ? "best_unsure" : "best_untested";
  return el("p", { class: "headline" }, pipelineName(pipeline), " ", t(key, { n: level }));
}

/** The mean, and how far it is ahead of the next one. */
function byHowMuch(summary, metric) {
  const next = data.answer.tests.find((each) => each.test && !isLevel(each));
  return el("p", { class: "line wrap" },
    el("span", { class: "muted" }, t("mean_of", { metric: metric.name })), el("strong", {}, number.score(summary.mean)), intervalText(summary), labelledText(summary),
    el("span", { class: "muted" }, t("on_questions", { n: summary.n, total: summary.total })), failedCells(summary),
    next ? el("span", {}, el("strong", {}, number.signed(next.test.difference)), " ", t("ahead_of", { name: pipelines[next.pipeline].name }),
      " ", intervalText(next.test, number.signed)) : null);
}

function sureCard() {
  const { best, metric, tests } = data.answer;
  const summary = metrics[metric].summary[best];
  const groups = [["sure_clear", ({ test }) => test?.better], ["sure_open", (each) => each.test && !each.test.better && !isLevel(each)],
    ["sure_level", isLevel], ["sure_untested", (each) => !each.test && !isPartial(each)], ["sure_partial", isPartial]]
    .map(([key, fits]) => [key, tests.filter(fits)]).filter(([, list]) => list.length);
  const line = ({ pipeline, test }) => el("li", {}, pipelineName(pipelines[pipeline]),
    test && !isLevel({ test }) ? el("span", { class: "muted small" }, ` ${number.signed(test.difference)}, p ${number.p(test.p)}`) : null,
    isPartial({ pipeline }) ? [" ", coverage(metrics[metric].summary[pipeline]), " ", failedCells(metrics[metric].summary[pipeline])] : null);
  const interval = summary.low === null ? t("sure_none") : t("sure_interval", { low: number.score(summary.low), high: number.score(summary.high) });
  return el("div", { class: "card" }, el("h3", {}, t("sure")),
    groups.map(([key, list]) => [el("p", { class: "small muted" }, t(key)), el("ul", { class: "facts-of" }, list.slice(0, 5).map(line),
      list.length > 5 ? el("li", { class: "muted small" }, t("failed_more", { n: list.length - 5 })) : null)]),
    tests.length ? null : el("p", { class: "small" }, interval));
}

/** Causes of wrong answers of the best pipeline, the most frequent first. */
function wrongOfBest() {
  return (data.answer.diagnosed?.causes ?? []).filter((found) => !data.cases[found.cause].good);
}

function whyCard() {
  const { best, diagnosed } = data.answer;
  const wrong = wrongOfBest();
  const counts = { n: wrong.reduce((sum, found) => sum + found.count, 0), total: diagnosed ? diagnosed.questions - diagnosed.unknown : 0, name: pipelines[best].name };
  return el("div", { class: "card" }, el("h3", {}, t("why")),
    el("p", { class: "small muted" }, t(!diagnosed ? "why_unknown" : wrong.length ? "why_count" : "why_none", counts)),
    el("ul", { class: "causes" }, wrong.slice(0, 3).map((found) => el("li", {}, causeLine(best, found)))));
}

function changeCard() {
  const [first] = wrongOfBest();
  const cause = first ? data.cases[first.cause] : null;
  const { diagnosed } = data.answer;
  const none = !diagnosed || diagnosed.unknown ? "change_unknown" : "change_none";
  return el("div", { class: "card" }, el("h3", {}, t("change")),
    cause ? [el("p", { class: "small muted" }, sentence(cause.cause)), remedies(cause.remedies.slice(0, 2))] : el("p", { class: "small muted" }, t(none)));
}

/** How many questions each pipeline answered right or wrong, declined, or answered anyway. */
function outcomesTable() {
  const answered = data.outcomes.filter((row) => row.right + row.wrong + row.declined + row.invented);
  if (!answered.length) return null;
  // each pipeline's answers are scored by the best metric that it has values of
  const metric = [...new Set(answered.map((row) => row.metric).filter(Boolean))].join(" / ");
  const { limit } = answered[0];
  const kinds = ["right", "wrong", "declined", "invented", "unknown"].filter((kind) => kind !== "unknown" || data.outcomes.some((row) => row.unknown));
  const known = data.questions.some((question) => question.answerable !== null); // else no decline is right or wrong
  const count = (row, kind) => labelled(el("td", { class: "number" }, el("span", {}, row[kind],
    kind === "declined" && row.declined && known ? el("span", { class: "small muted" }, ` (${t("outcome_declined_rightly", { n: row.declined_rightly })})`) : null)), t(`outcome_${kind}`));
  const title = metric ? t("outcomes", { metric, limit }) : t("outcomes_unscored");
  return el("div", {}, el("p", { class: "small muted" }, title), table(t("outcomes_unscored"), "outcomes scores", [t("pipeline"), ...kinds.map((kind) => t(`outcome_${kind}`))],
    data.outcomes.map((row, at) => el("tr", {}, el("th", { scope: "row" }, pipelineName(pipelines[at])), kinds.map((kind) => count(row, kind))))));
}
