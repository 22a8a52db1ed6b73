// Pipelines against each other, one metric at a time: differences with tests, what each adds, parts of the questions.

const comparing = { metric: 0 };
const comparison = data.comparison;
const named = new Map(pipelines.map((pipeline) => [pipeline.name, pipeline]));

function nameOf(name) {
  return named.has(name) ? pipelineName(named.get(name)) : iso(name);
}

function renderComparison() {
  if (!comparison) return;
  const metric = comparison.metrics[comparing.metric];
  const chooser = comparison.metrics.length < 2 ? null : el("div", { class: "filter" },
    choose(t("metric"), comparison.metrics.map((name, index) => [String(index), name]), String(comparing.metric), (value) => {
      comparing.metric = Number(value);
      renderComparison();
      document.querySelector("#comparison select").focus();
    }));
  const pairs = comparison.pairs.filter((pair) => pair.metric === metric);
  const together = comparison.complementarity[metric];
  replace("comparison-body", chooser,
    el("div", { class: "stack" }, pairs.length ? pairsTable(pairs) : null,
      together && together.n ? onlyLinks(together) : null,
      slicesTable(metric),
      comparison.notes.length ? el("ul", { class: "small muted" }, comparison.notes.map((note) => el("li", {}, iso(sentence(note))))) : null,
      el("p", { class: "small muted" }, t("correction", { n: comparison.tests }))));
}

function pairsTable(pairs) {
  const row = (pair) => el("tr", {},
    el("th", { scope: "row" }, nameOf(pair.pipeline), el("span", { class: "muted small" }, ` ${t("versus")} `), nameOf(pair.other)),
    ...[
      ["difference", pair.difference === null ? el("td", {}, "–") : el("td", { class: "difference" },
        el("span", { class: "line" }, el("span", { class: "mean" }, number.signed(pair.difference)), intervalText(pair, number.signed)),
        labelledText(pair, number.signed))],
      ["verdict", el("td", { class: "finding" }, pair.better ? el("span", { class: "chip gold" }, icon("check"), t("better"), " ", iso(pair.better)) : el("span", { class: "muted" }, t("no_clear_difference")))],
      ["p_value", el("td", { class: "number" }, number.p(pair.p_adjusted), el("span", { class: "small muted block" }, `${t("uncorrected")} ${number.p(pair.p)}`))],
      ["wins_losses", el("td", { class: "number" }, `${pair.wins} / ${pair.losses}`)],
      ...(hits ? [["hits_only", el("td", { class: "number" }, pair.hits ? `${pair.hits.only_pipeline} / ${pair.hits.only_other}` : "–",
        pair.hits ? el("span", { class: "small muted block" }, `p ${number.p(pair.mcnemar_p_adjusted)}`) : null)]] : []),
      ["n", el("td", { class: "number" }, pair.n)],
    ].map(([name, cell]) => labelled(cell, t(name))));
  const hits = pairs.some((pair) => pair.hits);
  const numbers = ["p_value", "wins_losses", ...(hits ? ["hits_only"] : []), "n"].map((name) => el("th", { scope: "col", class: "number" }, t(name)));
  return table(t("differences"), "pairs scores", [t("pipelines"), t("difference"), t("verdict"), ...numbers], pairs.map(row));
}

function onlyLinks(together) {
  const groups = [...Object.entries(together.only).map(([name, ids]) => ["only_by", name, ids]), ["by_nobody", "", together.nobody]].filter(([, , ids]) => ids.length);
  const share = (value) => `${Math.round(100 * value)}%`;
  const greedy = together.greedy.map((step) => t("combine_step", { name: step.pipeline, n: step.gain, share: share(step.share) }));
  return [el("p", { class: "small" }, t("combine_union", { bound: number.any(together.threshold), union: share(together.union), single: share(together.best_single) })),
    el("ol", { class: "only small" }, greedy.map((text) => el("li", {}, iso(text)))),
    el("ul", { class: "only" }, groups.map(([key, name, ids]) => {
      const label = t(key, { n: ids.length, name });
      return el("li", {}, el("button", { type: "button", class: "link", onclick: () => showQuestions({ only: { label, ids: new Set(ids) } }) }, label));
    }))];
}

function slicesTable(metric) {
  const groups = new Map();
  for (const slice of comparison.slices.filter((each) => each.metric === metric)) {
    const parts = inMap(groups, slice.by);
    inMap(parts, slice.value).set(slice.pipeline, slice);
  }
  // A way of parting the questions that gives one part says nothing new.
  const kept = [...groups].filter(([, parts]) => parts.size > 1);
  if (!kept.length) return null;
  const cell = (slice) => (!slice || slice.mean === null ? el("td", {}, "–") : el("td", { class: "value" },
    el("span", { class: "line" }, el("span", { class: "mean" }, number.score(slice.mean)), intervalText(slice)),
    el("span", { class: "small muted" }, `${slice.n} / ${slice.total}`)));
  return table(t("slices"), "scores slices", [el("th", { scope: "col", class: "sticky" }, t("slices")), ...comparison.pipelines.map(nameOf)],
    ...kept.map(([by, parts]) => [...parts].map(([value, slices]) => el("tr", {},
      el("th", { scope: "row", class: "sticky" }, el("span", { class: "small" }, tagName(by)), iso(partName(value))),
      comparison.pipelines.map((name) => labelled(cell(slices.get(name)), name))))));
}
