"""Faithfulness through the judge: worked examples, counts, and what has no value."""

from __future__ import annotations

from typing import Any

import pytest
from support.by_task import ByTask
from support.judging import ToolJudge, row, split, verdicts

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge import Judge
from rag_kit.evaluation.scorers import get_metric

TEN = (1, 1, 1, 1, 1, 1, 0, 0, 0, 0)


@pytest.mark.parametrize("model", [ByTask, ToolJudge])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("given", "value"), [((1, 1, 1, 0), 0.75), ((1, 0), 0.5), (TEN, 0.6)], ids=["3of4", "1of2", "6of10"]
)
async def test_worked_examples(model: Any, language: Any, given: tuple[int, ...], value: float) -> None:
    """As text and as a tool call, in both languages, the value is exact."""
    llm = model(answers={"judge_statements": split(len(given)), "judge_verdicts": verdicts(*given)})
    judge = Judge(llm, "none", language=language)
    cell = await get_metric("faithfulness").measure(*row(), judge)
    assert (cell.value, cell.status) == (value, "ok"), cell
    assert (cell.calls, cell.tokens) == (2, 30)
    assert [each["verdict"] for each in cell.details["statements"]] == list(given)
    told = "一字不改" if language == "zh" else "word for word"
    assert llm.tasks() == ["judge_statements", "judge_verdicts"]
    assert told in "".join(str(judge._prompts["judge_verdicts", language].messages))


async def test_an_answer_without_statements_has_no_value() -> None:
    """Undefined, and nothing more is asked."""
    llm = ByTask(answers={"judge_statements": {"statements": []}})
    cell = await get_metric("faithfulness").measure(*row(), Judge(llm, "none"))
    assert cell.status == "undefined"
    assert cell.calls == 1


async def test_nothing_retrieved_supports_nothing() -> None:
    """Ragas raises on empty contexts; here the value is 0, and the verdicts are not asked for."""
    llm = ByTask(answers={"judge_statements": split(2)})
    cell = await get_metric("faithfulness").measure(*row(contexts=[]), Judge(llm, "none"))
    assert (cell.value, cell.reason) == (0.0, "no passage was retrieved")
    assert llm.tasks() == ["judge_statements"]


async def test_the_value_is_what_ragas_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spy in Ragas's class sees the call, and what it returns is the cell's value."""
    from ragas.metrics.collections import Faithfulness
    from ragas.metrics.result import MetricResult

    seen: dict[str, Any] = {}

    async def spy(self: Any, **inputs: Any) -> MetricResult:
        seen.update(inputs)
        return MetricResult(value=0.123)

    monkeypatch.setattr(Faithfulness, "ascore", spy)
    llm = ByTask(answers={"judge_statements": split(2), "judge_verdicts": verdicts(1, 1)})
    cell: Cell = await get_metric("faithfulness").measure(*row(), Judge(llm, "none"))
    assert cell.value == 0.123
    assert seen["retrieved_contexts"] == ["A passage."]
