// What goes wrong where: causes with their share of the questions, and the parts of the kit that remedy them.

function renderDiagnosis() {
  if (data.diagnosis) replace("diagnosis-body", el("div", { class: "cards" }, data.diagnosis.map(diagnosisCard)));
}

function diagnosisCard(diagnosis) {
  const limits = Object.entries(diagnosis.thresholds).map(([name, limit]) => `${name} ≥ ${number.any(limit)}`).join(", ");
  const worst = diagnosis.causes.find((cause) => !data.cases[cause.cause].good);
  return el("div", { class: "card" }, el("h3", {}, pipelineName(pipelines[diagnosis.pipeline])),
    el("ul", { class: "causes" }, diagnosis.causes.map((found) => {
      const { cause: text, remedies: parts } = data.cases[found.cause];
      const what = [el("p", { class: "small" }, sentence(text)), parts.length ? remedies(parts) : null];
      const isOpen = found === worst && pipelines.length < 2;
      return el("li", {}, causeLine(diagnosis.pipeline, found), fold(t(parts.length ? "remedy" : "meaning"), what, isOpen));
    }),
      diagnosis.unknown ? el("li", { class: "muted small" }, t("no_cause_count", { n: diagnosis.unknown })) : null),
    el("p", { class: "small muted" }, t("thresholds", { limits })));
}

function causeLine(pipeline, found) {
  const label = sentence(data.cases[found.cause].title);
  return el("div", { class: "cause-line" }, el("strong", {}, label),
    el("button", { type: "button", class: "link", onclick: () => showQuestions({ cause: found.cause }, pipeline), "aria-label": `${t("show_these")}: ${label}` },
      t("questions_all", { n: found.count })));
}
