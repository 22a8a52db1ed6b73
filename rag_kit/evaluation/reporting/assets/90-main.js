// Puts the parts together; every switch draws them anew.

function renderAll() {
  document.documentElement.lang = state.language === "zh" ? "zh-Hans" : "en";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
  document.title = data.title ?? t("title");
  replace("title", iso(document.title));
  renderFacts();
  renderTools();
  renderAnswer();
  renderScores();
  renderComparison();
  renderDiagnosis();
  renderQuestions();
  renderAbout();
  if (document.getElementById("detail").open) renderDetail();
}

function renderFacts() {
  const facts = [
    t("pipelines_count", { n: pipelines.length }),
    t("questions_all", { n: data.questions.length }),
    t("metrics_count", { n: metrics.length }),
    data.dataset ? iso(data.dataset) : null,
    data.judge ? [t("judge_is"), iso(data.judge)] : null,
    data.created,
  ];
  replace("facts", facts.filter(Boolean).map((fact) => el("li", {}, fact)));
}

/** The button to the other language. */
function renderTools() {
  const other = state.language === "zh" ? "en" : "zh";
  const change = () => {
    state.language = other;
    renderAll();
    document.querySelector("#tools button").focus();
  };
  replace("tools", el("button", { type: "button", class: "quiet", lang: other === "zh" ? "zh-Hans" : "en", onclick: change }, other === "zh" ? "中文" : "English"));
}

function renderAbout() {
  replace("about-body", pipelines.map((pipeline) => fold(pipelineName(pipeline), tree(pipeline.manifest))));
}

function start() {
  const dialog = document.getElementById("detail");
  dialog.addEventListener("close", closeQuestion);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    const inside = event.target.closest("input, select, .scroll-x");
    if (inside || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") stepQuestion(-1);
    if (event.key === "ArrowRight") stepQuestion(1);
  });
  renderAll();
  openFromAddress();
  window.addEventListener("hashchange", openFromAddress);
  document.documentElement.dataset.ready = "true";
}

start();
