// The data as it stands in the file, made into what the page reads. Its other half is packing.py.

const usual = {
  question: { reference: null, answers: [], relevant: {}, answerable: null, history: [], tags: {} },
  run: { answer: null, status: null, error: null, queries: [], citations: [], messages: [], notes: [], calls: 0, tokens: 0, extra: null, diagnosis: null },
  cell: { status: "ok", reason: "", calls: 0, tokens: 0, seconds: 0 },
};

function unpacked(packed) {
  const { words, heads, metrics, details } = packed.tables;
  const named = (place) => (place === null || place === undefined ? undefined : words[place]);

  function stageOf([stage, retriever, rank, score, weight, query], own) {
    return { stage: named(stage), retriever: named(retriever), rank, score: score === true ? own : score, weight, query: named(query) };
  }

  function passageOf([head, score = null, grade = null, stages, notes]) {
    const [id, text, where] = heads[head];
    return { id, text, where, score, grade, stages: (stages ?? []).map((stage) => stageOf(stage, score)), notes: (notes ?? []).map(named) };
  }

  function cellOf(cell) {
    if (typeof cell === "number") return { ...usual.cell, value: cell, details: null };
    const found = { ...usual.cell, ...cell, details: cell.details === undefined ? null : details[cell.details] };
    if (cell.reason !== undefined) found.reason = words[cell.reason];
    return found;
  }

  function runOf(run) {
    if (run === null) return null;
    const cells = Object.create(null);
    run.cells.forEach((cell, place) => {
      if (cell !== null) cells[metrics[place]] = cellOf(cell);
    });
    const found = { ...usual.run, ...run, cells, notes: (run.notes ?? []).map(named) };
    // There are tens of thousands of passages, and a reader looks at those of a few questions.
    Object.defineProperty(found, "passages", { get: () => (run.passages ? run.passages.map(passageOf) : null) });
    return found;
  }

  return { ...packed, questions: packed.questions.map((question) => ({ ...usual.question, ...question, runs: question.runs.map(runOf) })) };
}
