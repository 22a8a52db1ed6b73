// Pipelines against each other, one metric at a time: differences with tests, what each adds, parts of the questions.

const comparing = { metric: 0 };
const comparison = data.comparison;
const named = new Map(pipelines.map((pipeline) => [pipeline.name, pipeline]));

function nameOf(name) {
  return named.has(name) ? pipelineName(named.get(name)) : iso(name);
}

function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
}

function renderComparison() {
  const section = document.getElementById("comparison");
  section.hidden = !comparison;
  const link = document.querySelector('a[href="#comparison"]');
  if (link) link.parentElement.hidden = !comparison;
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
      together && together.n ? el("div", { class: "cards" }, unionCard(together), matrixCard(together)) : null,
      slicesTable(metric),
      comparison.notes.length ? el("ul", { class: "small muted" }, comparison.notes.map((note) => el("li", {}, iso(sentence(note))))) : null,
      el("p", { class: "small muted" }, t(`correction_${comparison.correction}`, { n: comparison.tests }))));
}

/** An interval around zero, on one scale for all rows. */
function differenceBar(pair, reach) {
  const place = (value) => 50 + (47 * value) / reach;
  const color = pair.better ? (named.get(pair.better)?.color ?? "var(--ink)") : "var(--muted)";
  return svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", style: { "--color": color } },
    svg("path", { class: "bar-scale", d: "M3 5H97" }), svg("path", { class: "bar-zero", d: "M50 0V10" }),
    pair.low === null ? null : svg("path", { class: "bar-range", d: `M${place(pair.low)} 5H${place(pair.high) + 0.01}` }),
    svg("path", { class: "bar-mean", d: `M${place(pair.difference)} 1V9` }));
}

function pairsTable(pairs) {
  const ends = pairs.flatMap((pair) => [pair.difference, pair.low, pair.high]).filter((end) => end !== null).map(Math.abs);
  const reach = Math.max(...ends, 0.001);
  const row = (pair) => el("tr", {},
    el("th", { scope: "row", class: "versus" }, nameOf(pair.pipeline), el("span", { class: "muted small" }, ` ${t("versus")} `), nameOf(pair.other)),
    pair.difference === null ? el("td", {}, "–") : el("td", { class: "difference" },
      el("span", { class: "line" }, el("span", { class: "mean" }, number.signed(pair.difference)),
        pair.low === null ? null : el("span", { class: "interval" }, `[${number.signed(pair.low)}, ${number.signed(pair.high)}]`)),
      differenceBar(pair, reach)),
    el("td", { class: "finding" }, pair.better ? el("span", { class: "chip gold" }, icon("check"), t("better"), " ", iso(pair.better)) : el("span", { class: "muted" }, t("no_clear_difference"))),
    el("td", { class: "number" }, number.p(pair.p_adjusted), el("span", { class: "small muted block" }, `${t("uncorrected")} ${number.p(pair.p)}`)),
    el("td", { class: "number" }, `${pair.wins} / ${pair.losses}`),
    hits ? el("td", { class: "number" }, pair.hits ? `${pair.hits.only_pipeline} / ${pair.hits.only_other}` : "–",
      pair.hits ? el("span", { class: "small muted block" }, `p ${number.p(pair.mcnemar_p_adjusted)}`) : null) : null,
    el("td", { class: "number" }, pair.n));
  const hits = pairs.some((pair) => pair.hits);
  return el("div", { class: "scroll-x tall", tabindex: "0", role: "region", "aria-label": t("differences") }, el("table", { class: "pairs scores" },
    el("caption", { class: "hidden" }, t("differences")),
    el("thead", {}, el("tr", {}, ["pipelines", "difference", "verdict"].map((name) => el("th", { scope: "col" }, t(name))),
      ["p_value", "wins_losses", ...(hits ? ["hits_only"] : []), "n"].map((name) => el("th", { scope: "col", class: "number" }, t(name))))),
    el("tbody", {}, pairs.map(row))));
}

/** Which to combine: what each adds to those before it, up to what all together get. */
function unionCard(together) {
  let before = 0;
  const steps = together.greedy.map((step, index) => {
    const width = step.share - before;
    const from = before;
    before = step.share;
    return el("li", {},
      el("span", { class: "step-name" }, nameOf(step.pipeline)),
      svg("svg", { class: "step", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", style: { "--color": named.get(step.pipeline)?.color ?? "var(--ink)" } },
        svg("rect", { class: "step-scale", x: 0, y: 0, width: 100, height: 10 }), svg("rect", { class: "step-before", x: 0, y: 0, width: 100 * from, height: 10 }),
        svg("rect", { class: "step-gain", x: 100 * from, y: 0, width: 100 * width, height: 10 })),
      el("span", { class: "small" }, percent(step.share), el("span", { class: "muted" }, ` ${t(index ? "step_gain" : "step_first", { n: step.gain })}`)));
  });
  return el("div", { class: "card" }, el("h3", {}, t("best_set")),
    el("p", { class: "small muted" }, t("best_set_text", { bound: number.any(together.threshold), single: percent(together.best_single), union: percent(together.union) })),
    el("ol", { class: "steps" }, steps),
    onlyLinks(together));
}

function onlyLinks(together) {
  const groups = [...Object.entries(together.only).map(([name, ids]) => ["only_by", name, ids]), ["by_nobody", "", together.nobody]].filter(([, , ids]) => ids.length);
  return el("ul", { class: "only" }, groups.map(([key, name, ids]) => {
    const label = t(key, { n: ids.length, name });
    return el("li", {}, el("button", { type: "button", class: "link", onclick: () => showOnly(label, ids) }, label));
  }));
}

function showOnly(label, ids) {
  view.filter = { ...structuredClone(everything), only: { label, ids: new Set(ids) } };
  renderQuestions();
  document.getElementById("questions").scrollIntoView();
  document.querySelector("#questions-clear button").focus({ preventScroll: true });
}

function matrixCard(together) {
  const most = Math.max(1, ...together.matrix.flat());
  return el("div", { class: "card" }, el("h3", {}, t("matrix")), el("p", { class: "small muted" }, t("matrix_text", { n: together.n })),
    el("div", { class: "scroll-x plain-box", tabindex: "0", role: "region", "aria-label": t("matrix") }, el("table", { class: "heat" },
      el("thead", {}, el("tr", {}, el("td", {}), together.pipelines.map((name) => el("th", { scope: "col" }, nameOf(name))))),
      el("tbody", {}, together.pipelines.map((name, i) => el("tr", {}, el("th", { scope: "row" }, nameOf(name)),
        together.matrix[i].map((count, j) => el("td", { class: i === j ? "number own" : "number", style: { "--share": count / most } }, count))))))));
}

/** The name of a part: lengths and "not said" are the kit's own words, everything else is a tag of the data. */
function partName(by, value) {
  if (value === "(not said)") return t("part_not_said");
  const length = by === "length" && /^(short|medium|long) \((?:up to|over) (\d+) words\)$/.exec(value);
  return length ? t(`part_${length[1]}`, { n: length[2] }) : value;
}

function slicesTable(metric) {
  const list = comparison.slices.filter((slice) => slice.metric === metric);
  const groups = new Map();
  for (const slice of list) {
    if (!groups.has(slice.by)) groups.set(slice.by, new Map());
    const parts = groups.get(slice.by);
    if (!parts.has(slice.value)) parts.set(slice.value, new Map());
    parts.get(slice.value).set(slice.pipeline, slice);
  }
  // A way of parting the questions that gives one part says nothing new.
  const kept = [...groups].filter(([, parts]) => parts.size > 1);
  if (!kept.length) return null;
  const cell = (slice) => (!slice || slice.mean === null ? el("td", {}, "–") : el("td", { class: "value" },
    el("span", { class: "line" }, el("span", { class: "mean" }, number.score(slice.mean)),
      slice.low === null ? null : el("span", { class: "interval" }, `[${number.score(slice.low)}, ${number.score(slice.high)}]`)),
    el("span", { class: "coverage" }, `${slice.n} / ${slice.total}`)));
  return el("div", { class: "scroll-x tall", tabindex: "0", role: "region", "aria-label": t("slices") }, el("table", { class: "scores slices" },
    el("caption", { class: "hidden" }, t("slices")),
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "sticky" }, t("slices")), comparison.pipelines.map((name) => el("th", { scope: "col" }, nameOf(name))))),
    kept.map(([by, parts]) => el("tbody", {}, [...parts].map(([value, slices]) => el("tr", {},
      el("th", { scope: "row", class: "sticky" }, el("span", { class: "small" }, tagName(by)), iso(partName(by, value))),
      comparison.pipelines.map((name) => cell(slices.get(name)))))))));
}
