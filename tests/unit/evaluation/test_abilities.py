"""RGB's four abilities: the official rules, the kinds of pipelines, coverage, resuming."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.rgb import GivenPassages, aabilities, abilities
from rag_kit.evaluation.rgb.counterfeit import wrong_answer
from rag_kit.evaluation.rgb.own_corpus import items_of
from rag_kit.evaluation.rgb.rules import Item, judge, passages_of
from rag_kit.evaluation.sets import EvaluationSet
from rag_kit.models import chat_model

EN = Item("1", "en", "Where?", ("Tampa", ("Florida", "FL")), (("p1", "p2", "p3"),), ("n1", "n2", "n3", "n4"))
ZH = Item("1", "zh", "几席？", ("70",), (("p1",),), ("n1",))


@pytest.mark.parametrize(
    ("reply", "labels", "right"),
    [
        ("It is in TAMPA, florida.", (1, 1), True),
        ("tampa, fl", (1, 1), True),
        ("Tampa.", (1, 0), False),
        ("Miami.", (0, 0), False),
        ("", (0, 0), False),
        ("Tampa, Florida, though there is insufficient information.", (-1,), False),
        ("Insufficient Information", (0, 0), False),  # the rule looks for the words as they stand
    ],
)
def test_an_answer_counts_where_its_words_occur(reply, labels, right):
    """All parts are needed, one of its alternatives is enough for each; the decline's words win over everything."""
    verdict = judge(reply, EN)
    assert (verdict.labels, verdict.right, verdict.declined) == (labels, right, labels == (-1,))


def test_blanks_are_taken_out_of_chinese_replies():
    """共 7 0 席 counts, 信 息 不足 declines; in English blanks stay."""
    assert judge("共 7 0 席。", ZH).right and judge("文档信 息不足。", ZH).declined
    assert not judge("Tam pa, Florida", EN).right


def test_error_detection_is_by_the_fixed_words():
    """In both languages; a right answer beside it counts as one."""
    verdict = judge("There are factual errors in the documents. It is Tampa, Florida.", EN)
    assert verdict.detected and verdict.right
    assert judge("提供的文档存在事实 性错误。70 席。", ZH).detected and not judge("I doubt it.", EN).detected


def test_further_words_of_a_pipeline_decline_too():
    """Where they are given, and only there."""
    assert judge("Not in the documents.", EN, ["Not in the documents"]).declined
    assert not judge("Not in the documents.", EN).declined


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
    assert set(passages_of(EN, rate, count)) == positive | negative


def test_integration_brings_each_part_first():
    """One passage of every part, then in turns; noise takes the room that is left."""
    item = Item("1", "zh", "?", ("a", "b"), (("a1", "a2", "a3"), ("b1",)), ("n1", "n2"), kind="integration")
    for rate in (0.0, 0.4, 0.8):
        found = passages_of(item, rate, 5)
        assert "b1" in found and any(text.startswith("a") for text in found)
    assert sorted(passages_of(item, 0.0, 5)) == ["a1", "a2", "a3", "b1", "n1"]
    assert sum(text.startswith("n") for text in passages_of(item, 0.4, 5)) == 2
    assert len(passages_of(item, 0.8, 2)) == 2


def test_counterfactual_questions_have_the_wrong_passages():
    """None of the true ones is among them."""
    item = Item("1", "en", "?", ("a",), (("p1", "p2"),), ("n1", "n2"), ("w1", "w2"), "counterfactual")
    assert sorted(passages_of(item, 0.0, 5)) == ["w1", "w2"]
    assert passages_of(item, 0.0, 1)[0] in ("w1", "w2")


def test_the_order_is_that_of_the_official_draw():
    """random.seed(2333), then shuffle, anew for every question: pinned."""
    item = Item("1", "en", "?", ("a",), (("a", "b", "c", "d", "e"),), ())
    assert passages_of(item, 0.0, 5) == passages_of(item, 0.0, 5) == PINNED
    assert passages_of(item, 0.0, 5, seed=1) != PINNED


PINNED = ["b", "e", "d", "c", "a"]


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
    """Each ability, each figure, both languages; the files are named."""
    report = abilities(ideal, rgb(tmp_path / "rgb"), noise_rates=[0.0, 0.5])
    found = {(s.ability, s.metric, s.language, s.noise_rate): (s.value, s.n) for s in report.scores}
    assert found == {
        ("noise_robustness", "accuracy", "en", 0.0): (1.0, 2),
        ("noise_robustness", "accuracy", "en", 0.5): (1.0, 2),
        ("negative_rejection", "rejection", "en", 1.0): (1.0, 2),
        ("information_integration", "accuracy", "zh", 0.0): (1.0, 1),
        ("information_integration", "accuracy", "zh", 0.5): (1.0, 1),
        ("counterfactual_robustness", "accuracy", "en", None): (1.0, 2),
        ("counterfactual_robustness", "error_detection", "en", None): (1.0, 2),
        ("counterfactual_robustness", "error_correction", "en", None): (1.0, 2),
    }
    assert report.settings["files"] == {
        "en plain": "en_fact.jsonl", "zh integration": "zh_int.json", "en counterfactual": "en_fact.jsonl"
    }  # fmt: skip
    assert len(report.to_pandas()) == 8 and "noise_robustness" in str(report)


def test_a_parrot_scores_where_it_should(tmp_path):
    """Repeating the passages: right among noise, never declines, is misled, detects nothing; no share of nothing."""
    report = abilities(lambda q, passages: "".join(d.page_content for d in passages), rgb(tmp_path / "rgb"))
    assert report.get("noise_robustness", language="en", noise_rate=0.8).value == 1.0
    assert report.get("negative_rejection", language="en").value == 0.0
    assert report.get("counterfactual_robustness", "accuracy", language="en").value == 0.0
    assert report.get("counterfactual_robustness", "error_detection", language="en").value == 0.0
    correction = report.get("counterfactual_robustness", "error_correction", language="en")
    assert (correction.value, correction.low, correction.n) == (None, None, 0)


async def test_async_functions_and_pipelines_of_given_passages(tmp_path):
    """Each question's own passages reach the pipeline's retriever, also when many are asked at once."""
    from langchain_core.runnables import RunnableLambda

    async def reader(question: str, passages: list[Document]) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"answer": ideal(question, passages), "documents": passages}

    async def chain(question: str) -> str:
        await asyncio.sleep(0.001)
        return ideal(question, await GivenPassages().ainvoke("anything"))

    folder = rgb(tmp_path / "rgb")
    one = await aabilities(reader, folder)
    for pipeline in (chain, RunnableLambda(chain), lambda q: ideal(q, GivenPassages().invoke(q))):
        assert (await aabilities(pipeline, folder)).scores == one.scores


def test_a_graph_is_tested_with_the_passages_given(tmp_path):
    """A graph of the kit upon GivenPassages answers from them, and its own decline sentence counts."""
    from rag_kit.graphs import build_plain_rag

    graph = build_plain_rag(GivenPassages(), chat_model("extractive"))
    report = abilities(graph, rgb(tmp_path / "rgb"), languages=["en"], noise_rates=[0.0, 0.5])
    assert report.get("noise_robustness", language="en", noise_rate=0.5).value == 1.0
    assert report.get("negative_rejection", language="en").value == 1.0
    assert "The answer is not in the documents" in report.settings["declines"]


def test_a_pipeline_that_retrieves_for_itself_is_refused(tmp_path):
    """It would be scored on other passages than those that the figures speak of."""
    with pytest.raises(InvalidInputError, match="never asked for the passages"):
        abilities(lambda question: "London", rgb(tmp_path / "rgb"))
    with pytest.raises(InvalidInputError, match="only while abilities asks"):
        GivenPassages().invoke("outside")
    with pytest.raises(InvalidInputError, match="needs 3 arguments"):
        abilities(lambda a, b, c: "", rgb(tmp_path / "other"))


def test_a_chat_model_is_asked_with_the_prompt(tmp_path):
    """In the language of the question; only RGB's words decline."""
    seen: list[str] = []

    class Model(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            seen.append(str(messages))
            return "The answer is not in the documents."

    report = abilities(Model(responses=[""]), rgb(tmp_path / "rgb"), noise_rates=[0.0])
    assert report.get("negative_rejection", language="en").value == 0.0
    assert any("insufficient information in the documents" in text for text in seen)
    assert any("文档信息不足" in text and "大本钟" in text for text in seen)


def test_failures_are_counted_and_are_no_score(tmp_path):
    """Coverage is told; a key in an error is masked; a slow reply is a failure."""

    async def broken(question: str, passages: list[Document]) -> str:
        if "Louvre" in question:
            raise RuntimeError("401 with api_key=abcd1234efgh")
        if "大本钟" in question:
            await asyncio.sleep(30)
        return "London"

    report = abilities(broken, rgb(tmp_path / "rgb"), noise_rates=[0.0], timeout=0.5)
    score = report.get("noise_robustness", language="en")
    assert (score.value, score.n, score.total, score.errors) == (1.0, 1, 2, 1)
    assert report.get("information_integration", language="zh").value is None
    errors = {case["error"] for case in report.cases if case["error"]}
    assert errors == {"RuntimeError: 401 with api_key=***", "no reply within 0.5 s"}


def test_a_run_goes_on_where_it_ended(tmp_path):
    """Only what is missing or failed is asked; another seed needs another file; unchanged, nothing is asked."""
    asked: list[str] = []
    failing = True

    def reader(question: str, passages: list[Document]) -> str:
        asked.append(question)
        if failing and "Louvre" in question:
            raise RuntimeError("down")
        return ideal(question, passages)

    folder, out = rgb(tmp_path / "rgb"), tmp_path / "replies.jsonl"
    first = abilities(reader, folder, out=out, noise_rates=[0.0])
    count, failing = len(asked), False
    second = abilities(reader, folder, out=out, noise_rates=[0.0])
    again = len(asked) - count
    third = abilities(reader, folder, out=out, noise_rates=[0.0])
    assert again == sum(1 for case in first.cases if case["error"]) == 3
    assert len(asked) == count + again and third.scores == second.scores
    assert all(score.errors == 0 for score in third.scores)
    with pytest.raises(InvalidInputError, match="seed was 2333 and is 1"):
        abilities(reader, folder, out=out, noise_rates=[0.0], seed=1)


def test_a_cap_ends_the_run_and_is_told(tmp_path):
    """What was answered before is in the report."""
    report = abilities(chat_model("extractive"), rgb(tmp_path / "rgb"), max_calls=3, max_concurrency=1)
    assert (
        len(report.cases) == 3 and "max_calls=3" in (report.stopped_by or "") and "ended early" in str(report)
    )


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"abilities": ["juggling"]}, "give a list of noise_robustness"),
        ({"abilities": "noise_robustness"}, "give a list"),
        ({"noise_rates": [1.0]}, "less than 1"),
        ({"noise_rates": [float("nan")]}, "less than 1"),
        ({"passages": 0}, "passages is 0"),
        ({"limit": 0}, "limit is 0"),
        ({"languages": ["fr"]}, "no question for"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, settings, part):
    """The message says what is allowed."""
    with pytest.raises(InvalidInputError, match=part):
        abilities(ideal, rgb(tmp_path / "rgb"), **settings)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"id": 0}', "en_fact.jsonl:1: a question of RGB has id and query"),
        ('{"id": 0, "query": "a", "answer": 3, "positive": [], "negative": []}', "answer is 3"),
        ('{"id": 0, "query": "a", "answer": "b", "positive": "c", "negative": []}', "positive is 'c'"),
        ("[]", "a JSON list"),
    ],
)
def test_files_that_are_not_rgbs_are_named_by_line(tmp_path, line, part):
    """And a folder without any is refused."""
    (tmp_path / "en_fact.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInputError) as caught:
        abilities(ideal, tmp_path)
    assert part in str(caught.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="holds no file of RGB"):
        abilities(ideal, tmp_path / "empty")


def own() -> EvaluationSet:
    """A corpus about machines, with questions of each kind."""
    corpus = [
        Passage("d1", "The Aldebaran pump was built in 1815 by Ada."),
        Passage("d2", "The Mizar pump was built in 1912 by Grace."),
        Passage("d3", "泵站位于上海，建于2001年。"),
        Passage("d4", "泵站的门位于北京。"),
        Passage("d5", "Pumps need oil."),
        Passage("d6", "A pump was built."),
    ]
    examples = [
        Example("q1", "When was the Aldebaran pump built?", answers=("1815",), relevant={"d1": 1, "d5": 0}),
        Example("q2", "When was the Mizar pump built?", answers=("1912",), relevant={"d2": 1}),
        Example("q3", "Who built the Aldebaran and the Mizar pump?", answers=("Ada and Grace",),
                relevant={"d1": 1, "d2": 1}, metadata={"answer_parts": ["Ada", ["Grace", "G. H."]]}),
        Example("q4", "泵站位于哪里？", answers=("上海",), relevant={"d3": 1}),
        Example("q5", "门位于哪里？", answers=("北京",), relevant={"d4": 1}),
        Example("q6", "Is it loud?", answers=("yes",), relevant={"d5": 1}),
        Example("q7", "What is unknown?", answerable=False),
    ]  # fmt: skip
    return EvaluationSet("pumps", examples, corpus=corpus)


def test_items_are_made_of_a_set_of_ones_own():
    """Noise is near the question and holds no answer; parts, wrong passages; what cannot be used is counted."""
    items, skipped = items_of(own(), 5, 0)
    by = {(item.id, item.kind): item for item in items}
    one = by["q1", "plain"]
    assert one.positive == (("The Aldebaran pump was built in 1815 by Ada.",),) and one.language == "en"
    assert "The Mizar pump was built in 1912 by Grace." in one.negative
    assert not any("1815" in text for text in one.negative)
    assert by["q1", "counterfactual"].positive_wrong == ("The Aldebaran pump was built in 1912 by Ada.",)
    assert by["q4", "counterfactual"].positive_wrong == ("泵站位于北京，建于2001年。",)
    assert by["q3", "integration"].parts == ("Ada", ("Grace", "G. H."))
    assert len(by["q3", "integration"].positive) == 2 and by["q4", "plain"].language == "zh"
    assert skipped["all"] == {"the answer is a bare verdict": 1, "no short answers": 1}
    assert items_of(own(), 5, 0)[0] == items


def test_abilities_of_a_set_of_ones_own():
    """The same figures, with what was left out beside."""
    report = abilities(
        lambda q, passages: "".join(d.page_content for d in passages), own(), noise_rates=[0.0]
    )
    assert report.get("noise_robustness", language="en").value == 1.0
    assert report.get("information_integration", language="en").n == 1
    assert report.get("counterfactual_robustness", "accuracy", language="zh").value == 0.0
    assert report.skipped["information_integration"] == {"the answer is in one passage": 4}
    with pytest.raises(InvalidInputError, match="has no corpus"):
        abilities(ideal, EvaluationSet("none", list(own())))


def test_wrong_answers_have_the_form_of_the_right_one():
    """Never one that is right, is part of the right one, or stands in the passage; else other numbers; else none."""
    assert wrong_answer(["5 May 2001"], ["5 May 2001", "May", "7 June 1999"], ["x"], "0") == "7 June 1999"
    assert wrong_answer(["1815"], ["1912"], ["In 1815, not 1912."], "0") == "1816"
    assert wrong_answer(["99 km"], [], [""], "0") == "98 km"
    assert wrong_answer(["Ada"], ["a big red pump", "1815"], [""], "0") is None
    assert wrong_answer(["9" * 5000], [], [""], "0") is None


@pytest.mark.data
def test_rgb_itself(data_sets):
    """The real files load; the embedded model reads them; figures are shares of all questions."""
    report = abilities(chat_model("extractive"), data_sets / "rgb", limit=5, noise_rates=[0.0])
    assert {(s.ability, s.language) for s in report.scores} == {
        ("noise_robustness", "en"), ("noise_robustness", "zh"), ("negative_rejection", "en"),
        ("negative_rejection", "zh"), ("information_integration", "zh"), ("counterfactual_robustness", "en"),
        ("counterfactual_robustness", "zh"),
    }  # fmt: skip
    assert all(score.errors == 0 and score.total == 5 for score in report.scores)
