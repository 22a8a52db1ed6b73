"""Recall of the things that a reference names, beside Ragas's, along the text and the tool-call path, en and zh."""

from __future__ import annotations

from typing import Any

import pytest
from support.by_task import ByTask
from support.judging import ToolJudge, row

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge import Judge
from rag_kit.evaluation.scorers import get_metric

TOWER = "The Eiffel Tower in Paris was built in 1889 by Gustave Eiffel."
NAMES = ["The Eiffel Tower", "Paris", "1889", "Gustave Eiffel"]
塔 = "埃菲尔铁塔在巴黎，建于1889年，由古斯塔夫·埃菲尔设计。"
名称 = ["埃菲尔铁塔", "巴黎", "1889年", "古斯塔夫·埃菲尔"]


async def measure(
    answers: dict[str, Any], *, model: Any = ByTask, language: Any = "auto", **given: Any
) -> Cell:
    """The cell of ours."""
    judge = Judge(model(answers=answers), "none", language=language)
    cell = await get_metric("ours_context_entity_recall").measure(*row(**given), judge)
    assert {spoken for _, spoken in judge._prompts} <= ({"en", "zh"} if language == "auto" else {language})
    return cell


@pytest.mark.parametrize("model", [ByTask, ToolJudge])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("reference", "names", "contexts", "missed"),
    [
        (TOWER, NAMES, ["The EIFFEL tower stands in PARIS.", "It is from １８８９."], ["Gustave Eiffel"]),
        (塔, 名称, ["巴黎的埃菲爾鐵塔", "始建于 １８８９ 年"], ["古斯塔夫·埃菲尔"]),
    ],
)
async def test_three_of_four_names(
    model: Any, language: Any, reference: str, names: list[str], contexts: list[str], missed: list[str]
) -> None:
    """Three of four are 0.75; case, width, traditional characters, blanks and the article make no difference."""
    answers = {"judge_entities": {"entities": names}}
    cell = await measure(
        answers, model=model, language=language, reference=reference, contexts=contexts, question=reference
    )
    assert (cell.value, cell.calls, cell.details["missed"]) == (0.75, 1, missed)


async def test_ragas_loses_what_the_judge_leaves_out_of_the_passages_and_ours_does_not() -> None:
    """The passage names both; the judge lists one of them, and that with its article."""

    def listed(prompt: Any) -> dict[str, Any]:
        short = prompt.block("text").startswith("The Eiffel Tower is")
        return {"entities": ["Eiffel Tower", "Paris"] if short else ["the Eiffel Tower"]}

    given: dict[str, Any] = {
        "reference": "The Eiffel Tower is in Paris.", "contexts": ["See the Eiffel Tower while in Paris."],
    }  # fmt: skip
    llm = ByTask(answers={"judge_entities": listed})
    theirs = await get_metric("context_entity_recall").measure(*row(**given), Judge(llm, "none"))
    ours = await measure({"judge_entities": listed}, **given)
    assert (theirs.value, ours.value) == (0.0, 1.0)
    assert (theirs.calls, ours.calls) == (2, 1)


async def test_parts_of_words_are_no_names() -> None:
    """ "art" is not named by "party", nor 33 by 330."""
    answers = {"judge_entities": {"entities": ["Art", "33"]}}
    cell = await measure(answers, reference="Art 33.", contexts=["A party of 330."])
    assert cell.value == 0.0


async def test_what_the_judge_invents_counts_for_nothing() -> None:
    """Names that do not stand in the reference are set aside; if all are, there is no value."""
    answers = {"judge_entities": {"entities": ["Paris", "Rome", "paris", " ", "。"]}}
    cell = await measure(answers, reference="It is in Paris.", contexts=["Paris and Rome."])
    assert (cell.value, cell.details["invented"], cell.details["names"]) == (1.0, ["Rome"], ["Paris"])
    cell = await measure(
        {"judge_entities": {"entities": ["Rome"]}}, reference="It is so.", contexts=["Rome."]
    )
    assert (cell.status, cell.value) == ("undefined", None)


async def test_without_a_value() -> None:
    """A reference that names nothing has none; nothing retrieved is 0; a judge that fails is an error."""
    assert (await measure({"judge_entities": {"entities": []}})).status == "undefined"
    cell = await measure({"judge_entities": {"entities": ["Paris"]}}, reference="Paris.", contexts=[])
    assert cell.value == 0.0
    cell = await measure({"judge_entities": RuntimeError("no such luck")})
    assert (cell.status, cell.value) == ("error", None) and "no such luck" in cell.reason
    assert (await measure({}, reference=None)).status == "not_applicable"


@pytest.mark.parametrize(("reference", "passage"), [(TOWER, TOWER), (塔, 塔)])
async def test_the_embedded_judge(reference: str, passage: str) -> None:
    """It finds names in both languages, and the reference names what it names."""
    cell = await get_metric("ours_context_entity_recall").measure(
        *row(reference=reference, contexts=[passage]), Judge("extractive", "none")
    )
    assert cell.value == 1.0 and len(cell.details["names"]) >= 2
