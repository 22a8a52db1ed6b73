// What goes wrong where: causes with their share of the questions, and what to do.

function renderDiagnosis() {
  const section = document.getElementById("diagnosis");
  const found = data.diagnosis;
  section.hidden = !found;
  const link = document.querySelector('a[href="#diagnosis"]');
  if (link) link.parentElement.hidden = !found;
  if (!found) return;
  replace("diagnosis-body", el("div", { class: "cards" }, found.map(diagnosisCard)));
}

function diagnosisCard(diagnosis) {
  const pipeline = pipelines[diagnosis.pipeline];
  const total = diagnosis.causes.reduce((sum, cause) => sum + cause.count, 0) || 1;
  return el("div", { class: "card" }, el("h3", {}, pipelineName(pipeline)),
    diagnosis.notes.length ? el("ul", { class: "small muted" }, diagnosis.notes.map((note) => el("li", {}, iso(spoken(note))))) : null,
    el("ul", { class: "causes" }, diagnosis.causes.map((cause) => el("li", { class: cause.good ? "good" : null },
      el("div", { class: "cause-line" }, el("strong", {}, spoken(cause.label)),
        el("button", { type: "button", class: "link", onclick: () => showCause(diagnosis.pipeline, cause.cause), "aria-label": `${t("show_these")}: ${spoken(cause.label)}` },
          t("questions_all", { n: cause.count }))),
      svg("svg", { class: "step", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true",
        style: { "--color": cause.good ? "var(--good)" : "var(--warn)" } },
        svg("rect", { class: "step-scale", x: 0, y: 0, width: 100, height: 10 }),
        svg("rect", { class: "step-gain", x: 0, y: 0, width: (100 * cause.count) / total, height: 10 })),
      cause.remedy ? el("p", { class: "small" }, spoken(cause.remedy)) : null))));
}

function showCause(pipeline, cause) {
  Object.assign(view, { columns: `p:${pipeline}`, sort: null, direction: null, filter: { ...structuredClone(everything), cause } });
  renderQuestions();
  document.getElementById("questions").scrollIntoView();
  document.querySelector("#questions-clear button").focus({ preventScroll: true });
}
