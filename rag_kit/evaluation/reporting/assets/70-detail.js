// One question: what was searched for, what came back and why, the answer with its citations, what the judges say.

const detail = { place: 0, pipeline: 0 };

function openQuestion(place) {
  detail.place = place;
  detail.pipeline = focusPipeline() ?? detail.pipeline;
  renderDetail();
  const dialog = document.getElementById("detail");
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#q=${encodeURIComponent(data.questions[view.shown[place]].id)}`);
}

function closeQuestion() {
  history.replaceState(null, "", location.pathname + location.search);
  focusRow(detail.place);
}

/** Open the question that the address names, such as #q=17. */
function openFromAddress() {
  const match = /^#q=(.+)$/.exec(location.hash);
  if (!match) return;
  let id;
  try {
    id = decodeURIComponent(match[1]);
  } catch {
    return; // not an address that this page wrote
  }
  const index = data.questions.findIndex((question) => question.id === id);
  if (index < 0) return;
  if (!view.shown.includes(index)) {
    view.filter = structuredClone(everything);
    renderQuestions();
  }
  openQuestion(view.shown.indexOf(index));
}

function stepQuestion(step) {
  const place = detail.place + step;
  if (place >= 0 && place < view.shown.length) openQuestion(place);
}

function renderDetail() {
  const question = data.questions[view.shown[detail.place]];
  const step = (by, name, sign) => el("button", { type: "button", class: "quiet", "aria-label": t(name), title: t(name), "data-step": by,
    disabled: detail.place + by < 0 || detail.place + by >= view.shown.length,
    onclick: () => {
      stepQuestion(by);
      (document.querySelector(`#detail [data-step="${by}"]:not([disabled])`) ?? document.querySelector("#detail .close")).focus();
    } }, icon(sign));
  const close = el("button", { type: "button", class: "quiet close", "aria-label": t("close"), title: t("close"),
    onclick: () => document.getElementById("detail").close() }, icon("cross"));
  replace("detail",
    el("header", { class: "detail-bar" },
      el("span", { class: "small" }, t("question_of", { n: detail.place + 1, total: view.shown.length })),
      el("span", { class: "tools" }, step(-1, "previous", "left"), step(1, "next", "right"), close)),
    el("div", { class: "detail-body" }, questionHead(question), choosePipeline(),
      el("div", { id: "run" }, runView(question, question.runs[detail.pipeline]))));
}

function questionHead(question) {
  const chips = [chip(t("id"), question.id), ...Object.entries(question.tags).map(([key, value]) => chip(tagName(key), partName(value)))];
  if (question.answerable === false) chips.push(chip(t("answerable"), t("no")));
  return el("div", {},
    el("h2", { id: "detail-title" }, iso(question.question)),
    el("p", { class: "chips" }, chips),
    question.history.length ? fold(t("history"), question.history.map((turn) =>
      el("div", { class: "turn" }, el("p", {}, iso(turn.question)), el("p", { class: "muted" }, iso(turn.answer))))) : null,
    question.reference === null && !question.answers.length ? null : el("div", { class: "reference" },
      el("h3", {}, t("reference")),
      question.reference === null ? null : prose(question.reference),
      question.answers.length ? el("p", { class: "chips" }, question.answers.map((answer) => chip(null, answer))) : null));
}

function chip(name, value) {
  return el("span", { class: "chip" }, name ? el("span", { class: "muted" }, `${name} `) : null, iso(value));
}

function prose(text) {
  return el("p", { class: "prose" }, iso(text));
}

function fold(title, content, open = false) {
  return el("details", { open }, el("summary", {}, title), content);
}

function choosePipeline() {
  if (pipelines.length < 2) return null;
  return choose(t("pipeline"), pipelines.map(({ index, name }) => [String(index), name]), String(detail.pipeline), (value) => {
    detail.pipeline = Number(value);
    renderDetail();
    document.querySelector("#detail select").focus();
  });
}

function runView(question, run) {
  if (!run) return el("p", { class: "empty" }, t("not_asked"));
  return [
    run.error ? el("div", { class: "notice bad" }, icon("warn"), el("div", {}, el("strong", {}, t("pipeline_failed")), prose(sentence(run.error)))) : null,
    run.diagnosis ? diagnosisNotice(run.diagnosis) : null,
    answerView(run),
    queriesView(question, run),
    passagesView(question, run),
    cellsView(run),
    run.messages.length > 1 ? fold(t("messages"), tree(run.messages)) : null,
    run.notes.length ? fold(t("notes"), el("ul", {}, run.notes.map((note) => el("li", {}, iso(sentence(note)))))) : null,
  ];
}

function diagnosisNotice(diagnosis) {
  const cause = diagnosis.cause ? data.cases[diagnosis.cause] : null;
  return el("div", { class: "notice" }, icon(cause?.good ? "check" : "warn"),
    el("div", {}, el("strong", {}, cause ? sentence(cause.title) : t("no_cause")), cause ? prose(sentence(cause.cause)) : null,
      diagnosis.notes.length ? el("ul", { class: "small" }, diagnosis.notes.map((note) => el("li", {}, iso(sentence(note))))) : null));
}

function remedies(parts) {
  return el("ul", { class: "remedies" }, parts.map((remedy) => el("li", {}, sentence(remedy.text), " ", el("code", {}, remedy.part))));
}

function queriesView(question, run) {
  if (!run.queries.length) return null;
  const rewritten = run.queries.some((query) => query !== question.question);
  return el("section", {}, el("h3", {}, t("queries")),
    rewritten ? el("ol", { class: "queries" }, run.queries.map((query) =>
      el("li", {}, iso(query), query === question.question ? el("span", { class: "small muted" }, ` ${t("as_asked")}`) : null)))
      : el("p", { class: "muted" }, t("not_rewritten")));
}
