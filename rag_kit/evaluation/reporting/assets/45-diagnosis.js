// What goes wrong where: causes with their share of the questions, and the parts of the kit that remedy them.

function renderDiagnosis() {
  if (data.diagnosis) replace("diagnosis-body", el("div", { class: "cards" }, data.diagnosis.map(diagnosisCard)));
}

function diagnosisCard(diagnosis) {
  const limits = Object.entries(diagnosis.thresholds).map(([name, limit]) => `${name} ≥ ${number.any(limit)}`).join(", ");
  const worst = diagnosis.causes.find((cause) => !data.cases[cause.cause].good);
  return el("div", { class: "card" }, el("h3", {}, pipelineName(pipelines[diagnosis.pipeline])),
    el("ul", { class: "causes" }, diagnosis.causes.map((cause) => causeView(diagnosis, cause, cause === worst && pipelines.length < 2)),
      diagnosis.unknown ? el("li", { class: "muted small" }, t("no_cause_count", { n: diagnosis.unknown })) : null),
    el("p", { class: "small muted" }, t("thresholds", { limits })));
}

function causeLine(pipeline, found) {
  const label = spoken(data.cases[found.cause].label);
  return el("div", { class: "cause-line" }, el("strong", {}, label),
    el("button", { type: "button", class: "link", onclick: () => showQuestions({ cause: found.cause }, pipeline), "aria-label": `${t("show_these")}: ${label}` },
      t("questions_all", { n: found.count })));
}

function causeView(diagnosis, found, open) {
  const cause = data.cases[found.cause];
  return el("li", {},
    causeLine(diagnosis.pipeline, found),
    fold(t(cause.remedies.length ? "remedy" : "meaning"), [el("p", { class: "small" }, spoken(cause.text)), cause.remedies.length ? remedies(cause) : null], open));
}
