// Sentences that the kit's own metrics, retrievers, graphs and comparisons write, in the language of the page. What a judge or
// a user wrote is shown as it is.

/** Every text whose key begins with "reason_" is a pattern: its English words, with anything at its {places}. */
const sentences = Object.entries(texts.en).filter(([key]) => key.startsWith("reason_")).map(([key, text]) => {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
  const parts = text.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { key, names, words: text.replace(/\{\w+\}/g, "").length, pattern: new RegExp(`^${parts.join("([^]+?)")}$`) };
}).sort((a, b) => b.words - a.words); // the one that says most comes first: "{a}" would take everything

const mostSaid = 2000; // characters; what is longer is no sentence of ours

/** A sentence of the kit in the language shown; parts of it that are sentences too; else the text itself. */
function sentence(text, depth = 0) {
  if (state.language === "en" || typeof text !== "string" || text.length > mostSaid || depth > 4) return text;
  // Several sentences first: "{n} missing" would take "3 supported, 1 missing" whole.
  for (const [between, joined] of [["; ", "；"], [", ", "，"]]) {
    const parts = text.split(between);
    const spoken = parts.map((part) => (parts.length > 1 ? sentence(part, depth + 1) : part));
    if (parts.length > 1 && spoken.every((part, index) => part !== parts[index])) return spoken.join(joined);
  }
  for (const { key, names, pattern } of sentences) {
    const found = pattern.exec(text);
    if (found) return t(key, Object.fromEntries(names.map((name, index) => [name, sentence(found[index + 1], depth + 1)])));
  }
  return text;
}
