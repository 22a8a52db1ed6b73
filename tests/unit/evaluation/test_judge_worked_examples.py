"""The worked examples of Ragas's judged metrics come out exactly: as text, as a tool call, over HTTP, in en and zh."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from support.by_task import ByTask
from support.judging import FixedVectors, ToolJudge, row, served, split, verdicts
from support.openai_server import OpenAIServer

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.scorers.ragas_judged import AnswerCorrectness, FactualCorrectness
from rag_kit.models.endpoint import forget_methods

Model = Callable[[Mapping[str, Any]], Any]
PATHS = (
    "text",
    "tool",
    "http_text",
    "http_tools",
    pytest.param("http_json_schema", marks=pytest.mark.slow),
    pytest.param("http_json_object", marks=pytest.mark.slow),
)
_REFUSED: dict[str, set[str]] = {
    "http_text": {"json_schema", "tools", "json_object"},
    "http_tools": {"json_schema", "json_object"},
    "http_json_schema": set(),
    "http_json_object": {"json_schema", "tools"},
}


@pytest.fixture(params=PATHS)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    """A maker of judges that answer by task, each along another path; after the test the path is seen to be taken."""
    path = request.param
    forget_methods()  # what an earlier server on this port could not do
    with ExitStack() as stack:
        servers: list[OpenAIServer] = []

        def make(answers: Mapping[str, Any]) -> Any:
            if not path.startswith("http"):
                return (ByTask if path == "text" else ToolJudge)(answers=dict(answers))
            from langchain_openai import ChatOpenAI

            server = stack.enter_context(OpenAIServer([served(answers)], refuse=_REFUSED[path]))
            servers.append(server)
            return ChatOpenAI(model="judge", base_url=server.url, api_key="sk-test")

        yield make
        for server in servers:
            assert server.asked[-1] == path.removeprefix("http_")


async def measured(
    metric: str | Metric,
    llm: Any,
    language: Any,
    vectors: Mapping[str, list[float]] | None = None,
    **given: Any,
) -> Cell:
    """The cell of one row."""
    judge = Judge(llm, FixedVectors(vectors) if vectors else "none", language=language)
    cell = await get_metric(metric).measure(*row(**given), judge)
    assert cell.status == "ok", cell
    assert {spoken for _, spoken in judge._prompts} <= {language}, "prompts of the other language were sent"
    return cell


def cosine(value: float) -> list[float]:
    """A unit vector with that cosine to [1, 0]."""
    return [value, math.sqrt(1 - value * value)]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("given", "value"), [((1, 1, 1, 0), 0.75), ((1, 0), 0.5), ((1,) * 6 + (0,) * 4, 0.6)],
    ids=["3of4", "1of2", "6of10"],
)  # fmt: skip
async def test_faithfulness(model: Model, language: str, given: tuple[int, ...], value: float) -> None:
    """[1, 1, 1, 0] is 0.75, [1, 0] is 0.5, 6 of 10 is 0.6."""
    llm = model({"judge_statements": split(len(given)), "judge_verdicts": verdicts(*given)})
    assert (await measured("faithfulness", llm, language)).value == value


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_faithfulness_without_statements(model: Model, language: Any) -> None:
    """Undefined, along every path."""
    llm = model({"judge_statements": {"statements": []}})
    cell = await get_metric("faithfulness").measure(*row(), Judge(llm, "none", language=language))
    assert (cell.status, cell.value) == ("undefined", None)


SENTENCES = {
    "en": [f"Sentence number {n} speaks of rivers." for n in range(1, 11)],
    "zh": [f"第{n}句话讲的是河流。" for n in range(1, 11)],
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("chosen", "of", "value"), [([1, 4, 6, 10], 10, 0.4), ([1, 3, 4], 5, 0.6)])
async def test_context_relevance(
    model: Model, language: str, chosen: list[int], of: int, value: float
) -> None:
    """4 relevant sentences of 10 are 0.4, 3 of 5 are 0.6."""
    llm = model({"judge_sentences": {"sentences": chosen}})
    question = "讲了什么？" if language == "zh" else "What of?"
    text = "".join(SENTENCES[language][:of]) if language == "zh" else " ".join(SENTENCES[language][:of])
    cell = await measured("ours_context_relevance", llm, language, contexts=[text], question=question)
    assert cell.value == value
    assert cell.details["relevant"] == [SENTENCES[language][n - 1] for n in chosen]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_umbrela(model: Model, language: str) -> None:
    """The grades 3, 0, 2 have the mean 5/3; a grade is what the judge says of that passage."""
    grades = {"Passage a.": 3, "Passage b.": 0, "Passage c.": 2}

    def judged(request: Any) -> dict[str, Any]:
        asked = request.prompt if hasattr(request, "prompt") else request.body
        (grade,) = [grade for text, grade in grades.items() if text in asked]
        return {"reason": "r", "grade": grade}

    cell = await measured("ours_umbrela", model({"judge_relevance": judged}), language, contexts=list(grades))
    assert (cell.value, cell.details["grades"]) == (pytest.approx(5 / 3), [3, 0, 2])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("", 0.5), ("_all", 0.5), ("_weighted", 0.5), ("_partial", 0.625)],
)
async def test_nugget_recall(model: Model, language: str, name: str, value: float) -> None:
    """Vital full and partial, okay full and none: 1/2 of the vital; all 2/4; weighted 1.5/3; with halves 2.5/4."""
    texts = ["简·奥斯汀写了它。", "它出版于1815年。", "它是小说。", "它有续集。"]
    nuggets = [
        {"text": text, "importance": "vital" if place < 2 else "okay"} for place, text in enumerate(texts)
    ]
    labels = [
        {"id": place, "support": support}
        for place, support in enumerate(("full", "partial", "full", "none"), start=1)
    ]
    llm = model({"judge_nuggets": {"nuggets": nuggets}, "judge_nugget_support": {"labels": labels}})
    cell = await measured(f"ours_nugget_recall{name}", llm, language)
    assert cell.value == pytest.approx(value)
    assert [each["support"] for each in cell.details["nuggets"]] == ["full", "partial", "full", "none"]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_judged_citations(model: Model, language: str) -> None:
    """4 statements: supported, unsupported, missing, declared. Precision 1/2, recall 1/3, F1 0.4."""
    answer = {
        "en": "The Rhine is long [1]. The Loire is blue [2]. It is pretty. As far as I know, ships use it.",
        "zh": "莱茵河很长[1]。卢瓦尔河是蓝色的[2]。它很美。据我所知，有船航行。",
    }[language]

    def judged(request: Any) -> dict[str, Any]:
        asked = request.prompt if hasattr(request, "prompt") else request.body
        return {"reason": "r", "support": "full" if "First passage." in asked else "none"}

    cell = await measured(
        "ours_citations_judged", model({"judge_citation": judged}), language, answer=answer,
        contexts=["First passage.", "Second passage."],
    )  # fmt: skip
    kinds = [each["kind"] for each in cell.details["statements"]]
    assert kinds == ["supported", "unsupported", "missing", "ungrounded"]
    assert (cell.details["precision"], cell.details["recall"]) == (0.5, pytest.approx(1 / 3))
    assert cell.value == pytest.approx(0.4)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("given", "value"), [((0,), 0.0), ((1,), 1.0), ((1, 1, 0, 0), 0.5)])
async def test_context_recall(model: Model, language: str, given: tuple[int, ...], value: float) -> None:
    """[0] is 0, [1] is 1, [1, 1, 0, 0] is 0.5."""
    entries = [{"statement": f"S{n}.", "reason": "r", "attributed": each} for n, each in enumerate(given)]
    llm = model({"judge_recall": {"classifications": entries}})
    assert (await measured("context_recall", llm, language)).value == value


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["context_precision", "context_precision_without_reference"])
@pytest.mark.parametrize(("given", "value"), [((0, 0), 0.0), ((0, 1), 0.5), ((1, 0, 1), 0.8333333333)])
async def test_context_precision_epsilon(
    model: Model, language: str, name: str, given: tuple[int, ...], value: float
) -> None:
    """[0, 0] is 0, [0, 1] is 0.5, [1, 0, 1] is 0.8333333, each less the epsilon that Ragas divides by."""
    useful = [f"Passage {n} is of use." if each else f"Passage {n} is idle." for n, each in enumerate(given)]

    def judged(request: Any) -> dict[str, Any]:
        asked = request.prompt if hasattr(request, "prompt") else request.body
        return {"reason": "r", "verdict": int("is of use" in asked.split("<context>")[1])}

    cell = await measured(name, model({"judge_context": judged}), language, contexts=useful)
    assert cell.value == pytest.approx(value, abs=1e-9)
    assert cell.calls >= len(given)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_answer_correctness(model: Model, language: str) -> None:
    """TP = FP = FN = 1 is an F1 of 0.5; with a cosine of 0.8 it is 0.575."""

    def entry(name: str) -> dict[str, str]:
        return {"statement": f"Statement {name}.", "reason": "r"}

    answers = {
        "judge_statements": split(2),
        "judge_correctness": {"TP": [entry("a")], "FP": [entry("b")], "FN": [entry("b")]},
    }
    texts = {"It was so.": [1.0, 0.0], "It is so.": cosine(0.8)}
    cell = await measured("answer_correctness", model(answers), language, texts, answer="It was so.")
    assert cell.value == pytest.approx(0.575, abs=1e-12)
    assert cell.reason == "1 statements right, 1 wrong, 1 missing"
    alone = await measured(AnswerCorrectness(weights=(1.0, 0.0)), model(answers), language)
    assert alone.value == 0.5


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_answer_relevancy(model: Model, language: str) -> None:
    """Cosines 0.92, 0.75 and 0.85 are 0.84; all evasive is 0."""
    guesses = [{"question": f"Q{n}?", "noncommittal": 0} for n in range(3)]
    vectors = {"What is it?": [1.0, 0.0], **{f"Q{n}?": cosine(c) for n, c in enumerate((0.92, 0.75, 0.85))}}
    cell = await measured("answer_relevancy", model({"judge_question": guesses}), language, vectors)
    assert cell.value == pytest.approx(0.84, abs=1e-12)
    evasive = [{**guess, "noncommittal": 1} for guess in guesses]
    cell = await measured("answer_relevancy", model({"judge_question": evasive}), language, vectors)
    assert (cell.value, cell.reason) == (0.0, "the answer evades")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("mode", "value"), [("f1", 0.4), ("precision", 0.5), ("recall", 0.33)])
async def test_factual_correctness(model: Model, language: str, mode: Any, value: float) -> None:
    """Two claims of which one holds; of the three of the reference the answer holds one."""

    def claims(request: Any) -> dict[str, Any]:
        asked = request.prompt if hasattr(request, "prompt") else request.body
        names = "ab" if "It was so." in asked else "cde"
        return {"claims": [f"Statement {name}." for name in names]}

    def judged(request: Any) -> dict[str, Any]:
        asked = request.prompt if hasattr(request, "prompt") else request.body
        return verdicts(1, 0) if "Statement a." in asked else verdicts(1, 0, 0, names="cde")

    llm = model({"judge_claims": claims, "judge_verdicts": judged})
    cell = await measured(FactualCorrectness(mode=mode), llm, language, answer="It was so.")
    assert cell.value == pytest.approx(value, abs=1e-9)


async def test_semantic_similarity() -> None:
    """The cosine, also one below 0; no chat model is asked."""
    for given in (0.8, -0.6):
        llm = ByTask(answers={})
        vectors = {"It was so.": [1.0, 0.0], "It is so.": cosine(given)}
        cell = await measured("semantic_similarity", llm, "en", vectors, answer="It was so.")
        assert cell.value == pytest.approx(given, abs=1e-12)
        assert cell.calls == 0
