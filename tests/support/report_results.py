"""Results for tests of the report: three pipelines that look like real ones, and one that means harm."""

from __future__ import annotations

import random

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row

METRICS = ("context_recall", "context_precision", "faithfulness", "answer_relevancy", "answer_correctness")
HOSTILE = (
    '</script><script>window.hacked = 1</script><img src="http://127.0.0.1:9/x.png" onerror="window.hacked = 2">',
    "\x1b[31mred\x1b[0m \u202eturned\u202c \u200bhidden\x07",
    "javascript:window.hacked=3",
    "<!-- <style>*{display:none}</style> &lt;b&gt; {{data}} ${1+1} `x` \u2028 '\"",
)

_TOPICS = (
    (
        "Why does the sea rise twice a day?",
        "The moon pulls the sea, and the far side bulges.",
        "tides.md",
        "en",
    ),
    ("Which step checks the citations?", "Each quote is searched for in its passage.", "answers.md", "en"),
    ("How long may a folder be locked?", "A writer that died frees its lock at once.", "index.md", "en"),
    (
        "What does reciprocal rank fusion need?",
        "Ranks alone; scores need not be comparable.",
        "fusion.md",
        "en",
    ),
    ("混合检索什么时候比关键词检索好？", "用词不同时，向量检索能找到意思相近的段落。", "检索.md", "zh"),
    ("父子文档怎样切分？", "先按结构切成大段，再切成小段；检索小段，返回大段。", "切分.md", "zh"),
)


def results_of_pipelines(count: int = 60, seed: int = 5) -> list[Results]:
    """Three pipelines over the same questions."""
    return [
        _results("bm25", count, seed, 0.55, 0.12, rewrites=False),
        _results("hybrid", count, seed + 1, 0.72, 0.35, rewrites=False),
        _results("hybrid + multi-query", count, seed + 2, 0.78, 1.4, rewrites=True),
    ]


def _results(name: str, count: int, seed: int, level: float, seconds: float, *, rewrites: bool) -> Results:
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        example = _example(number)
        if number % 29 == 17:
            output = Output(
                error="ModelUnreachableError: no answer from http://127.0.0.1:1 with api_key=abcd1234"
            )
            reason = f"the pipeline failed: {output.error}"
            rows.append(Row(example, output, {metric: Cell.error(reason) for metric in METRICS}))
            continue
        good = min(1.0, max(0.0, chance.gauss(level, 0.28)))
        output = _output(example, number, good, seconds * chance.uniform(0.6, 2.2), rewrites)
        rows.append(Row(example, output, _cells(chance, good, number)))
    manifest = {
        "dataset": {"name": "handbook", "examples": count},
        "judge": {"model": "openai:gpt-mini", "prompts": {"judge_faithfulness": "3f1c9a"}},
        "versions": {"rag_kit": "0.1.0", "ragas": "0.4.3"},
        "settings": {"pipeline": name, "max_concurrency": 8, "key": "sk-abcdef1234567890"},
    }
    return Results(name, rows, METRICS, manifest)


def _example(number: int) -> Example:
    question, reference, file, language = _TOPICS[number % len(_TOPICS)]
    kind = "multi_hop" if number % 5 == 3 else "single_hop"
    return Example(
        f"q{number:04d}",
        f"{question} ({number})",
        reference=reference,
        relevant={file: 2, "other.md": 1, f"n{number}.md": 0},
        tags={"type": kind, "language": language},
        answers=(reference[:12],),
    )


def _stage(stage: str, retriever: str, query: str, rank: int, score: float = 1.0) -> dict[str, object]:
    return {"stage": stage, "retriever": retriever, "query": query, "rank": rank, "score": score}


def _citation(
    number: int, statement: str, status: str, quote: str | None, reason: str, **more: object
) -> dict[str, object]:
    said = {"number": number, "statement": statement, "quote": quote, "status": status, "reason": reason}
    return {**said, **more}


def _output(example: Example, number: int, good: float, seconds: float, rewrites: bool) -> Output:
    reference = str(example.reference)
    file = next(iter(example.relevant))
    stages = [
        _stage("bm25", "BM25Retriever", example.question, 2, 7.1013),
        _stage("dense", "VectorRetriever", "tides and the moon" if rewrites else example.question, 1, 0.8123),
        {**_stage("fusion:rrf", "EnsembleRetriever", example.question, 1, 0.0325), "weight": 0.5},
    ]
    filler = "A paragraph about something near by, which says a little of it. " * (1 + number % 9)
    passages = [
        Passage(
            f"c{number}-1",
            f"Before it stands this. {reference} After it stands that. {filler}",
            {"file": file, "page": 3, "heading": "Basics"},
            {"score": 0.0325, "rank": 1, "stages": stages, "notes": []},
        ),
        Passage(
            f"c{number % 7}-2",
            filler,
            {"file": "other.md", "heading": "Beside"},
            {"score": 0.0161, "rank": 2, "stages": stages[:1], "notes": ["degraded: no dense search"]},
        ),
        Passage(f"n{number}", filler[:90], {"file": f"n{number}.md"}, {}),
    ]
    if good < 0.25:
        passages = passages[1:]
    held = [
        ("unsupported", None, "The passage says nothing of it."),
        ("supported", reference, "It is there."),
    ]
    verdict, quote, reason = held[good >= 0.25]
    other = "unsupported" if number % 4 == 0 else "supported"
    elsewhere = "It is said elsewhere, too."
    citations = [
        _citation(1, reference, verdict, quote, reason, score=good, file=file, page=3, heading="Basics"),
        _citation(
            2, elsewhere, other, filler[:40], "Half of its words are there.", score=0.5, file="other.md"
        ),
    ]
    status = "flagged" if number % 4 == 0 or good < 0.25 else "grounded"
    queries = (
        (example.question, "tides and the moon", "what pulls the sea") if rewrites else (example.question,)
    )
    return Output(
        answer=f"{reference} [1] {elsewhere} [2]",
        passages=tuple(passages),
        citations=tuple(citations),
        status=status,
        queries=queries,
        notes=("web: could not look outside, no web search was given",) if number % 6 == 0 else (),
        calls=3 if rewrites else 1,
        tokens=900 if rewrites else 420,
        seconds=seconds,
        extra={"action": "correct", "strips": ["x" * 6000]},
    )


def _cells(chance: random.Random, good: float, number: int) -> dict[str, Cell]:
    cells = {}
    for metric in METRICS:
        value = min(1.0, max(0.0, round(chance.gauss(good, 0.15) * 8) / 8))
        cells[metric] = Cell(value, reason="", calls=2, tokens=610, seconds=0.8)
    held = cells["faithfulness"].value or 0.0
    statements = [
        {
            "statement": f"Statement {i + 1} of the answer.",
            "verdict": int(i < held * 4),
            "reason": "So it says.",
        }
        for i in range(4)
    ]
    reason = f"{sum(s['verdict'] for s in statements)} of 4 statements hold."
    cells["faithfulness"] = Cell(held, "ok", reason, 2, 610, 0.8, {"statements": statements})
    if number % 23 == 5:
        cells["faithfulness"] = Cell.undefined("the answer holds no statement")
    if number % 31 == 9:
        cells["answer_correctness"] = Cell.error("time-out after 60 s, with Bearer abcdefgh12345678")
    if number % 13 == 4:
        cells["context_recall"] = Cell.not_applicable("the example has no reference")
    return cells


def hostile_results() -> Results:
    """Every text of a result is an attack."""
    rows = []
    for number, text in enumerate(HOSTILE):
        provenance = {"score": 1.0, "rank": 1, "notes": [text], "stages": [_stage(text, text, text, 1)]}
        call = {"type": "ai", "content": text, "tool_calls": [{"name": text, "args": {text: text}}]}
        output = Output(
            answer=f"{text} [1]",
            passages=(Passage(text, text, {"source": text, "heading": text}, provenance),),
            queries=(text, "other"),
            notes=(text,),
            status=text,
            citations=(_citation(1, text, "supported", text, text, source=text),),
            messages=({"type": text, "content": text}, call),
            extra={text: text},
        )
        verdict = Cell.ok(0.5, text, statements=[{text: text, "verdict": 1}])
        tags = {"type": text, text: str(number % 2)}
        example = Example(
            f"{number}{text}", text, reference=text, answers=(text,), relevant={text: 1}, tags=tags,
            history=({"question": text, "answer": text},),
        )  # fmt: skip
        cells = {"faithfulness": verdict, text: Cell.error(text)}
        rows.append(Row(example, output, cells))
    return Results(HOSTILE[0], rows, ("faithfulness", *HOSTILE), {"settings": {HOSTILE[0]: list(HOSTILE)}})
