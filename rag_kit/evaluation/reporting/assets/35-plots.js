// The plots are drawn once, in English; their words are put into the language of the page here.

const plotWords = [
  [/^mean, ([\d.]+)% interval; at the right: questions with a value$/, "svg_scores", ["level"]],
  [/^no value$/, "svg_none", []],
  [/^(.+) \(no value\)$/, "svg_none_of", ["name"]],
  [/^seconds a question: median, to the 95th percentile$/, "svg_seconds", []],
  [/^no pipeline has both a value and a time$/, "svg_no_point", []],
  [/^(.+): a question is got from (\S+) on;$/, "svg_got", ["metric", "bound"]],
  [/^(\d+) of (\d+) questions? (?:has|have) a value from all$/, "svg_values", ["n", "total"]],
  [/^at least one gets (\S+); the best one alone (\S+); combine:$/, "svg_union", ["union", "single"]],
  [/^(\d+)\. (.+): \+(\d+), together (\S+)$/, "svg_step", ["place", "name", "n", "share"]],
  [/^(.+) from (\S+)$/, "svg_from", ["metric", "bound"]],
  [/^below$/, "svg_below", []],
  [/^across: score of the first passage$/, "svg_across_first", []],
  [/^across: (.+)$/, "svg_across", ["name"]],
  [/^(.+) \((\d+), (\d+) without\)$/, "svg_panel", ["name", "n", "without"]],
];

const plotTexts = [...document.querySelectorAll(".drawing svg text")].filter((node) => !node.firstElementChild).map((node) => [node, node.textContent]);

function renderPlots() {
  for (const [node, text] of plotTexts) node.textContent = state.language === "en" ? text : translated(plotWords, text);
  for (const drawing of document.querySelectorAll(".drawing")) {
    const image = drawing.querySelector("svg");
    image.dataset.label ??= image.getAttribute("aria-label");
    const caption = document.getElementById(drawing.getAttribute("aria-labelledby")).textContent;
    image.setAttribute("aria-label", state.language === "en" ? image.dataset.label : caption);
  }
}
