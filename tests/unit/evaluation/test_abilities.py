"""RGB's four abilities: the published rules, its files, coverage, resuming."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, Results, aabilities, abilities
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.rgb import AbilityMetric, AbilityReport, draw_passages
from rag_kit.models import chat_model

QUIET: dict[str, Any] = {"progress": False}
PARTS = {"en": [["Tampa"], ["Florida", "FL"]], "zh": [["70"]]}


async def scored(figure: str, reply: str, language: str = "en", *declines: str) -> float | None:
    """Return a figure for a reply about counterfactual passages, or about noise alone."""
    ability = "negative_rejection" if figure == "rejection" else "counterfactual_robustness"
    tags = {"ability": ability, "language": language}
    example = Example("q", "?", tags=tags, metadata={"parts": PARTS[language]})
    metric = AbilityMetric(figure, ["insufficient information", "信息不足", *declines])
    return (await metric.measure(example, Output(answer=reply))).value


@pytest.mark.parametrize(
    ("figure", "language", "reply", "value"),
    [
        ("accuracy", "en", "It is in TAMPA, florida.", 1),
        ("accuracy", "en", "tampa, fl", 1),
        ("accuracy", "en", "Tampa.", 0),
        ("accuracy", "en", "", 0),
        ("accuracy", "en", "Tam pa, Florida", 0),
        ("accuracy", "en", "Tampa, Florida, though there is insufficient information.", 0),
        ("accuracy", "zh", "共 7 0 席。", 1),
        ("rejection", "en", "Because of insufficient information: no.", 1),
        ("rejection", "en", "Insufficient Information", 0),  # the rule looks for the words as they stand
        ("rejection", "zh", "文档信 息不足。", 1),
        ("error_detection", "en", "There are factual errors in the documents.", 1),
        ("error_detection", "en", "I doubt it.", 0),
        ("error_detection", "zh", "提供的文档存在事实性 错误。70 席。", 1),
        ("error_correction", "en", "There are factual errors. It is Tampa, Florida.", 1),
        ("error_correction", "en", "It is Tampa, Florida.", None),  # it detected nothing
    ],
)
async def test_the_published_rules(figure, language, reply, value):
    """All parts are needed, one text is enough for each; declining wins; blanks of a Chinese reply do not count."""
    assert await scored(figure, reply, language) == value


async def test_further_words_of_a_pipeline_decline_too():
    """Figures are given for these settings, and only for them."""
    assert await scored("rejection", "Not in the documents.", "en", "Not in the documents") == 1
    assert await scored("rejection", "Not in the documents.") == 0


RECORD = {
    "positive": ["p1", "p2", "p3"],
    "negative": ["n1", "n2", "n3", "n4"],
    "positive_wrong": ["w1", "w2"],
}


@pytest.mark.parametrize(
    ("rate", "count", "positive", "negative"),
    [
        (0.0, 5, {"p1", "p2", "p3"}, {"n1", "n2"}),  # too few true ones: noise fills up
        (0.0, 2, {"p1", "p2"}, set()),
        (0.2, 2, {"p1"}, {"n1"}),  # ceil(0.4) = 1
        (0.6, 5, {"p1", "p2"}, {"n1", "n2", "n3"}),
        (0.8, 10, {"p1", "p2", "p3"}, {"n1", "n2", "n3", "n4"}),  # too little noise: true ones fill up
        (1.0, 5, set(), {"n1", "n2", "n3", "n4"}),
    ],
)
def test_noise_by_rate(rate, count, positive, negative):
    """ceil(count * rate) noise passages; what one kind lacks the other fills; at 1 there is noise alone."""
    assert set(draw_passages("plain", RECORD, rate, count)) == positive | negative


def test_passages_of_integration_and_of_counterfactual_questions():
    """One passage of every part, then in turns, noise in the room that is left; wrong passages alone."""
    parts = {"positive": [["a1", "a2", "a3"], ["b1"]], "negative": ["n1", "n2"]}
    assert sorted(draw_passages("integration", parts, 0.0, 5)) == ["a1", "a2", "a3", "b1", "n1"]
    assert "b1" in draw_passages("integration", parts, 0.8, 5)
    assert sum(text.startswith("n") for text in draw_passages("integration", parts, 0.4, 5)) == 2
    assert sorted(draw_passages("wrong", RECORD, 0.0, 5)) == ["w1", "w2"]


def test_the_order_is_that_of_the_official_draw():
    """random.seed(2333), then shuffle, anew for every question: pinned."""
    record = {"positive": ["a", "b", "c", "d", "e"], "negative": []}
    assert draw_passages("plain", record, 0.0, 5) == ["b", "e", "d", "c", "a"]


def rgb(folder: Path) -> Path:
    """A small folder in RGB's form."""
    folder.mkdir()
    fact = [
        {"id": n, "query": f"Where is {name}?", "fakeanswer": "Rome",
         "answer": [[place, place.upper()]] if n else place,
         "positive": [f"{name} is in {place}."], "positive_wrong": [f"{name} is in Rome."],
         "negative": ["The pump is loud.", "Tea is hot."]}
        for n, (name, place) in enumerate([("Big Ben", "London"), ("The Louvre", "Paris")])
    ]  # fmt: skip
    both = [{"id": 0, "query": "大本钟和卢浮宫在哪里？", "answer": ["伦敦", "巴黎"],
             "positive": [["大本钟在伦敦。"], ["卢浮宫在巴黎。"]], "negative": ["茶很热。"]}]  # fmt: skip
    (folder / "en_fact.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in fact), encoding="utf-8")
    (folder / "zh_int.json").write_text("".join(f"{json.dumps(row)}\n" for row in both), encoding="utf-8")
    return folder


def ideal(question: str, passages: list[Document]) -> str:
    """Knows everything, and what the documents should say."""
    text = " ".join(document.page_content for document in passages)
    if "Rome" in text:
        return "There are factual errors in the documents. London, PARIS."
    if not any(place in text for place in ("London", "Paris", "伦敦", "巴黎")):
        return "insufficient information"
    return text


def test_an_ideal_reader_scores_one(tmp_path):
    """Each ability, each figure, both languages; the report is that of the results' folder, too."""
    report = abilities(ideal, rgb(tmp_path / "rgb"), noise_rates=[0.0, 0.5], out=tmp_path / "run", **QUIET)
    found = {key: (score.mean, score.n) for key, score in report.scores.items()}
    assert found == {
        ("noise_robustness", "accuracy", "en", 0.0): (1.0, 2),
        ("noise_robustness", "accuracy", "en", 0.5): (1.0, 2),
        ("negative_rejection", "rejection", "en", 1.0): (1.0, 2),
        ("information_integration", "accuracy", "zh", 0.0): (1.0, 1),
        ("information_integration", "accuracy", "zh", 0.5): (1.0, 1),
        ("counterfactual_robustness", "accuracy", "en", 0.0): (1.0, 2),
        ("counterfactual_robustness", "error_detection", "en", 0.0): (1.0, 2),
        ("counterfactual_robustness", "error_correction", "en", 0.0): (1.0, 2),
    }
    assert AbilityReport(Results.load(tmp_path / "run")).scores == report.scores
    assert "noise_robustness" in str(report) and "<table" in report._repr_html_()
    told = json.dumps(report.to_json())
    assert '"value": 1.0' in told and "Louvre" not in told


def test_a_parrot_scores_where_it_should(tmp_path):
    """Repeating the passages: right among noise, never declines, is misled, detects nothing; no share of nothing."""
    scores = abilities(parrot, rgb(tmp_path / "rgb"), **QUIET).scores
    assert scores["noise_robustness", "accuracy", "en", 0.8].mean == 1.0
    assert scores["negative_rejection", "rejection", "en", 1.0].mean == 0.0
    assert scores["counterfactual_robustness", "accuracy", "en", 0.0].mean == 0.0
    assert scores["counterfactual_robustness", "error_detection", "en", 0.0].mean == 0.0
    correction = scores["counterfactual_robustness", "error_correction", "en", 0.0]
    assert (correction.mean, correction.low, correction.n) == (None, None, 0)


def parrot(question: str, passages: list[Document]) -> str:
    return "".join(document.page_content for document in passages)


async def test_async_functions_and_graphs(tmp_path):
    """A function may be async and give whatever `Output.of` reads; a graph is built upon the passages."""
    from langchain_core.runnables import RunnableLambda

    from rag_kit.graphs import build_plain_rag

    async def reader(question: str, passages: list[Document]) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"answer": ideal(question, passages), "documents": passages}

    def graph(question: str, passages: list[Document]) -> Any:
        rag = build_plain_rag(RunnableLambda(lambda query: passages), chat_model("extractive"))
        return rag.invoke({"question": question})

    folder = rgb(tmp_path / "rgb")
    report = await aabilities(reader, folder, **QUIET)
    assert all(score.mean == 1.0 for score in report.scores.values())
    scores = (await aabilities(graph, folder, noise_rates=[0.5], **QUIET)).scores
    assert scores["noise_robustness", "accuracy", "en", 0.5].mean == 1.0
    assert scores["negative_rejection", "rejection", "en", 1.0].mean == 1.0  # its own decline sentence counts


def test_a_chat_model_is_asked_with_the_prompt(tmp_path):
    """In the language of the question; only RGB's words decline."""
    seen: list[str] = []

    class Model(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            seen.append(str(messages))
            return "The answer is not in the documents."

    report = abilities(Model(responses=[""]), rgb(tmp_path / "rgb"), noise_rates=[0.0], **QUIET)
    assert report.scores["negative_rejection", "rejection", "en", 1.0].mean == 0.0
    assert any("insufficient information in the documents" in text for text in seen)
    assert any("文档信息不足" in text and "大本钟" in text for text in seen)


def test_failures_are_counted_and_are_no_score(tmp_path):
    """Coverage is shown; a key in an error is masked; a slow reply is a failure."""

    async def broken(question: str, passages: list[Document]) -> str:
        if "Louvre" in question:
            raise RuntimeError("401 with api_key=abcd1234efgh")
        if "大本钟" in question:
            await asyncio.sleep(30)
        return "London"

    report = abilities(broken, rgb(tmp_path / "rgb"), noise_rates=[0.0], timeout=0.5, **QUIET)
    score = report.scores["noise_robustness", "accuracy", "en", 0.0]
    assert (score.mean, score.n, score.total, score.errors) == (1.0, 1, 2, 1)
    assert report.scores["information_integration", "accuracy", "zh", 0.0].mean is None
    assert "1 of 2, 1 failed" in str(report)
    assert not any("abcd1234efgh" in str(row.output.error) for row in report.results)


def test_a_run_goes_on_where_it_ended(tmp_path):
    """Only what is missing or failed is asked; unchanged, nothing is asked; a cap ends the run, and is shown."""
    asked: list[str] = []
    is_up = threading.Event()  # what a server is in; a dict would be a part of the pipeline

    def reader(question: str, passages: list[Document]) -> str:
        asked.append(question)
        if not is_up.is_set() and "Louvre" in question:
            raise RuntimeError("down")
        return ideal(question, passages)

    settings = {"out": tmp_path / "run", "noise_rates": [0.0], **QUIET}
    folder = rgb(tmp_path / "rgb")
    abilities(reader, folder, **settings)
    count = len(asked)
    is_up.set()
    second = abilities(reader, folder, **settings)
    assert asked[count:] == ["Where is The Louvre?"] * 3
    assert abilities(reader, folder, **settings).scores == second.scores and len(asked) == count + 3
    assert all(score.errors == 0 for score in second.scores.values())
    capped = abilities(chat_model("extractive"), folder, max_calls=3, max_concurrency=1, **QUIET)
    assert len(capped.results) == 3 and "(max_calls=3)" in str(capped)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"abilities": ["juggling"]}, "give a list of noise_robustness"),
        ({"noise_rates": [1.0]}, "from 0 to below 1"),
        ({"noise_rates": 0.4}, "give a list of numbers"),
        ({"limit": 0}, "limit=0"),
        ({"limit": -1}, "limit=-1"),
        ({"passages": 0}, "passages=0"),
        ({"passages": -1}, "passages=-1"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, settings, part):
    """The message says what is allowed."""
    with pytest.raises(InvalidInputError, match=part):
        abilities(ideal, rgb(tmp_path / "rgb"), **settings)
    with pytest.raises(InvalidInputError, match=r"no function of \(question, passages\)"):
        abilities("a model", tmp_path / "rgb")


def test_files_that_are_not_rgbs_are_named_by_line(tmp_path):
    """And a folder without any is refused."""
    (tmp_path / "en_fact.jsonl").write_text('{"id": 0, "query": "a", "answer": "b", "positive": "c"}')
    with pytest.raises(InvalidInputError, match=r"en_fact\.jsonl:1: no question of RGB"):
        abilities(ideal, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"a folder of RGB has en\.json"):
        abilities(ideal, tmp_path / "empty")


@pytest.mark.data
def test_rgb_itself(data_sets):
    """The real files load; the embedded model reads them; figures are shares of all questions."""
    report = abilities(chat_model("extractive"), data_sets / "rgb", limit=5, noise_rates=[0.0], **QUIET)
    assert {(key[0], key[2]) for key in report.scores} == {
        ("noise_robustness", "en"), ("noise_robustness", "zh"), ("negative_rejection", "en"),
        ("negative_rejection", "zh"), ("information_integration", "zh"), ("counterfactual_robustness", "en"),
        ("counterfactual_robustness", "zh"),
    }  # fmt: skip
    assert all(score.errors == 0 and score.total == 5 for score in report.scores.values())
