// The answer with its citations, and the passages that they quote.

const citationSigns = { supported: "check", unsupported: "cross", missing_passage: "cross", undecided: "warn" };
const citationHolds = (citation) => ["supported", "undecided"].includes(citation.status);

function answerView(run) {
  if (run.answer === null) return null;
  const parts = [];
  let end = 0;
  for (const match of run.answer.matchAll(/\[(\d{1,3})\]/g)) {
    const place = Number(match[1]);
    if (!run.passages || place < 1 || place > run.passages.length) continue;
    const bad = run.citations.some((citation) => citation.number === place && !citationHolds(citation));
    parts.push(run.answer.slice(end, match.index), el("button", { type: "button", class: bad ? "cite bad" : "cite",
      "aria-label": t("go_to_passage", { n: place }), onclick: () => showPassage(place) }, place));
    end = match.index + match[0].length;
  }
  parts.push(run.answer.slice(end));
  const facts = [run.status ? word("answer", run.status) : null, number.seconds(run.seconds), t("calls", { n: run.calls }), t("tokens", { n: run.tokens })];
  return el("section", {}, el("h3", {}, t("answer_text"), el("span", { class: "facts" }, facts.filter(Boolean).map((fact) => el("span", {}, fact)))),
    el("p", { class: "prose" }, el("bdi", {}, parts)),
    run.citations.length ? el("ol", { class: "citations" }, run.citations.map((citation) => citationView(citation, run))) : null);
}

/** A citation: of a passage that is there, its place, which says whether that is a page, a sheet or a slide. */
function citationView(citation, run) {
  const passage = run.passages?.[citation.number - 1];
  const where = passage ? placeOf(data.passages[passage.head][2]) : [citation.file ?? citation.source ?? citation.title, citation.page === null || citation.page === undefined ? null : t("page", { n: citation.page }), citation.heading];
  return el("li", { class: citationHolds(citation) ? "citation" : "citation bad" },
    icon(citationSigns[citation.status] ?? "warn"),
    el("div", {},
      el("p", {}, el("strong", {}, `[${citation.number}] `, word("citation", citation.status)), citation.statement ? [" ", iso(citation.statement)] : null),
      citation.quote ? el("blockquote", {}, iso(citation.quote)) : null,
      el("p", { class: "small muted" }, where.filter(Boolean).map((part) => [iso(part), " · "]), citation.reason ? iso(sentence(citation.reason)) : null)));
}

function passagesView(question, run) {
  if (!run.passages) return null;
  const gold = Object.keys(question.relevant).length > 0;
  const found = run.passages.filter((passage) => passage.grade > 0).length;
  return el("section", {}, el("h3", {}, t("passages"), el("span", { class: "facts" },
    el("span", {}, t("passages_count", { n: run.passages.length })), gold ? el("span", {}, t("passages_gold", { n: found })) : null)),
    run.passages.length ? el("ol", { class: "passages" }, run.passages.map((passage, index) => passageView(passage, index + 1, run, question)))
      : el("p", { class: "muted" }, t("no_passages")));
}

/** File and place: [["file", "a.pdf"], ["page", "3"]] -> "a.pdf", "page 3". */
function placeOf(parts) {
  return parts.map(([kind, value]) => (["page", "sheet", "slide"].includes(kind) ? t(kind, { n: value }) : value));
}

function passageView(passage, place, run, question) {
  const quotes = run.citations.filter((citation) => citation.number === place && citation.quote).map((citation) => citation.quote);
  const text = data.passages[passage.head][1];
  return el("li", { class: "passage", id: `passage-${place}`, tabindex: "-1" },
    el("div", { class: "passage-head" },
      el("span", { class: "rank" }, place),
      el("span", { class: "where" }, placeOf(data.passages[passage.head][2]).map((part, index) => [index ? " · " : null, iso(part)])),
      passage.grade > 0 ? el("span", { class: "chip gold" }, icon("check"), t("relevant", { n: passage.grade })) : null,
      passage.grade === 0 ? el("span", { class: "chip" }, t("judged_not_relevant")) : null,
      typeof passage.score === "number" ? el("span", { class: "small muted" }, t("passage_score", { n: number.any(passage.score) })) : null),
    el("p", { class: "prose passage-text", tabindex: "0" }, el("bdi", {}, marked(text, quotes))), stagesView(passage, question),
    passage.notes.length ? el("ul", { class: "small muted" }, passage.notes.map((note) => el("li", {}, iso(sentence(note))))) : null);
}

/** Why a passage is here: each stage with its rank and score there. */
function stagesView(passage, question) {
  if (!passage.stages.length) return null;
  return el("ol", { class: "stages", "aria-label": t("provenance") }, passage.stages.map((stage) => {
    const facts = ["rank", "score", "weight"].filter((key) => typeof stage[key] === "number").map((key) => t(`stage_${key}`, { n: number.any(stage[key]) }));
    const names = stage.retriever && stage.retriever !== stage.stage ? `${stage.stage} · ${stage.retriever}` : stage.stage;
    return el("li", {}, el("strong", {}, iso(names)), el("span", { class: "muted" }, ` ${facts.join(state.language === "zh" ? "，" : ", ")}`),
      stage.query && stage.query !== question.question ? el("span", { class: "muted" }, "“", iso(stage.query), "”") : null);
  }));
}

/** The text with its quoted stretches marked; quotes are searched verbatim. */
function marked(text, quotes) {
  const spans = quotes.map((quote) => [text.indexOf(quote), quote.length]).filter(([start]) => start >= 0)
    .map(([start, length]) => [start, start + length]).sort((a, b) => a[0] - b[0]);
  const parts = [];
  let end = 0;
  for (const [start, stop] of spans) {
    if (stop <= end) continue;
    const from = Math.max(start, end);
    parts.push(text.slice(end, from), el("mark", {}, text.slice(from, stop)));
    end = stop;
  }
  return [...parts, text.slice(end)];
}

function showPassage(place) {
  const passage = document.getElementById(`passage-${place}`);
  (passage.querySelector("mark") ?? passage).scrollIntoView({ block: "center" });
  passage.focus({ preventScroll: true });
}
