"""Results to write to trackers: both languages, each status of a cell, a failed pipeline, texts that stores hate."""

from __future__ import annotations

from dataclasses import replace

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row

#: A key that no pattern of keys knows: it is hidden because it was given.
KEY = "plain7secret8without9pattern"
METRICS = ("faithfulness", "答案正确")


def some_results(count: int = 0, *, name: str = "hybrid 混合", dataset: str | None = "tides 潮汐") -> Results:
    """Four rows, and ``count`` more plain ones."""
    rows = [
        Row(
            Example(
                "en-1", "Why does the sea rise?", reference="The moon pulls it.", answers=("moon",),
                tags={"language": "en"}, metadata={"level": 2},
            ),
            Output(
                answer="The moon pulls it [1].", seconds=1.25, calls=2, tokens=90,
                passages=(
                    Passage("d1", "The moon pulls the sea."),
                    Passage("d2", "Tides rise twice a day."),
                ),
            ),
            {"faithfulness": Cell(1 / 3, reason="one of three holds", calls=1, tokens=40),
             "答案正确": Cell.ok(0.0, "wrong")},
        ),
        Row(
            Example("zh-1", "海水为什么会涨？", reference="月球的引力。", tags={"language": "zh"}),
            Output(answer="因为月球的引力。", passages=(Passage("文档1", "月球吸引海水。"),), seconds=0.5),
            {"faithfulness": Cell.ok(1.0, "有依据"), "答案正确": Cell.undefined("没有可核对的陈述")},
        ),
        Row(
            Example("en-2", "Who was first?", history=({"question": "Hi", "answer": "Hello"},)),
            Output(error="TimeoutError: took longer than 5 s with api_key=sk-abcdef123456"),
            {"faithfulness": Cell.error("the judge did not answer"),
             "答案正确": Cell.not_applicable("there is no reference")},
        ),
        Row(
            Example("odd \ud800\x00", "What <b>if</b> \x00 \ud800?"),
            Output(answer="", passages=()),
            {"faithfulness": Cell.ok(0.5)},
        ),
    ]  # fmt: skip
    rows += [
        Row(
            Example(f"more-{number:05d}", f"Question {number}?"),
            Output(answer=f"Answer {number}."),
            {metric: Cell.ok(number % 10 / 10) for metric in METRICS},
        )
        for number in range(count)
    ]
    manifest = {
        "started": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:05:05Z",
        "dataset": {"name": dataset, "fingerprint": "0123456789abcdef"},
        "settings": {"timeout": 5.0, "name": "x" * 2000, "headers": {"api_key": "sk-settings-secret-1"}},
        "judge": {"model": "openai:gpt-5.5", "note": "Bearer abcdef1234567890"},
        "metrics": [{"name": "faithfulness", "asks_judge": True}, {"name": "答案正确"}],
        "versions": {"python": "3.11.9"},
    }  # fmt: skip
    return Results(name, rows, METRICS, manifest)


def changed(results: Results) -> Results:
    """The same with another answer in the first row."""
    first, *others = results.rows
    return Results(
        results.name,
        [replace(first, output=replace(first.output, answer="Another answer.")), *others],
        results.metrics,
        results.manifest,
    )


def scores(results: Results) -> dict[tuple[str, str], float]:
    """(example id, metric) -> value, of the cells that have one."""
    return {
        (row.example.id, name): float(cell.value)
        for row in results.rows
        for name, cell in row.cells.items()
        if cell.value is not None
    }


def entries(results: Results) -> int:
    """Examples, runs and scores."""
    return 2 * len(results) + sum(len(row.cells) for row in results.rows)
