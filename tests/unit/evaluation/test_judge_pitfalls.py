"""Each pitfall of Ragas 0.4.3 that is known, by name: what Ragas does with it, and what comes out here."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import ChatOpenAI
from support.by_task import ByTask
from support.judging import FixedVectors, ToolJudge, row, served, split, verdicts
from support.openai_server import OpenAIServer, error

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge import Judge, load_ragas
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.scorers.ragas_judged import AnswerRelevancy
from rag_kit.evaluation.scorers.ragas_judged.metrics import METRICS
from rag_kit.prompts import load_prompt

UNIT = [1.0, 0.0]
GUESSES = [{"question": f"Q{n}?", "noncommittal": 0} for n in range(3)]
GUESSED = {"What is it?": UNIT, "It is so.": UNIT, **{f"Q{n}?": UNIT for n in range(3)}}


async def measured(name: str, llm: Any, embeddings: Any = "none", **given: Any) -> Cell:
    """The cell of one row."""
    return await get_metric(name).measure(*row(**given), Judge(llm, embeddings))


def faithful(*given: int) -> dict[str, Any]:
    """Answers of a judge for faithfulness."""
    return {"judge_statements": split(len(given)), "judge_verdicts": verdicts(*given)}


@pytest.mark.parametrize("differs", ["endpoint", "model", "temperature", "system prompt"])
async def test_cache_key_holds_model_endpoint_settings_and_prompt(differs: str, tmp_path: Path) -> None:
    """Ragas's key leaves them out, and judge B got judge A's score with no request."""
    cache, prompts = tmp_path / "c.sqlite", tmp_path / "prompts"
    with OpenAIServer([served(faithful(1, 1))]) as one, OpenAIServer([served(faithful(1, 0))]) as two:
        settings: dict[str, Any] = {"model": "a", "base_url": one.url, "api_key": "sk-1", "temperature": 0}
        first = await get_metric("faithfulness").measure(
            *row(), Judge(ChatOpenAI(**settings), "none", cache=cache)
        )
        again = await get_metric("faithfulness").measure(
            *row(), Judge(ChatOpenAI(**settings), "none", cache=cache)
        )
        assert (first.value, first.calls, again.value, again.calls) == (1.0, 2, 1.0, 0)
        folder = None
        if differs == "endpoint":
            settings["base_url"] = two.url
        elif differs == "system prompt":
            folder = prompts
            prompts.mkdir()
            for name in ("judge_statements", "judge_verdicts"):
                text = Path(load_prompt(name).file).read_text(encoding="utf-8")
                (prompts / f"{name}.en.prompt").write_text(
                    text.replace("Rules", "Your rules"), encoding="utf-8"
                )
        else:
            settings[differs] = "b" if differs == "model" else 0.7
        other = Judge(ChatOpenAI(**settings), "none", cache=cache, prompts=folder)
        cell = await get_metric("faithfulness").measure(*row(), other)
        assert cell.calls == 2
        assert cell.value == (0.5 if differs == "endpoint" else 1.0)


async def test_cache_key_holds_the_schema(tmp_path: Path) -> None:
    """The same prompt for another class is another question."""
    from pydantic import BaseModel

    class One(BaseModel):
        a: int

    class Two(BaseModel):
        b: int

    llm = ByTask(answers={"judge_ragas_prompt": [{"a": 1}, {"b": 2}]})
    judge = Judge(llm, "none", cache=tmp_path / "c.sqlite")
    one = await judge.ask("judge_ragas_prompt", {"prompt": "x"}, One)
    two = await judge.ask("judge_ragas_prompt", {"prompt": "x"}, Two)
    assert (one, two) == (One(a=1), Two(b=2))
    assert await judge.ask("judge_ragas_prompt", {"prompt": "x"}, One) == one
    assert len(llm.asked) == 2


@pytest.mark.parametrize(
    "failure", [{"statements": [{"statement": "S."}]}, ValueError("broken")], ids=["form", "raise"]
)
async def test_failures_are_never_cached(failure: Any, tmp_path: Path) -> None:
    """What failed is asked for again by the next run."""
    cache = tmp_path / "c.sqlite"
    broken = ByTask(answers={"judge_statements": split(2), "judge_verdicts": failure, "repair_json": "no"})
    cell = await get_metric("faithfulness").measure(*row(), Judge(broken, "none", cache=cache))
    assert cell.status == "error"
    good = ByTask(answers=faithful(1, 0))
    cell = await get_metric("faithfulness").measure(*row(), Judge(good, "none", cache=cache))
    assert (cell.value, good.tasks()) == (0.5, ["judge_verdicts"])


async def test_incomplete_verdicts_are_never_cached(tmp_path: Path) -> None:
    """They fit the schema, and are a failure all the same."""
    cache = tmp_path / "c.sqlite"
    poor = ByTask(answers={"judge_statements": split(4), "judge_verdicts": verdicts(1, 1)})
    cell = await get_metric("faithfulness").measure(*row(), Judge(poor, "none", cache=cache))
    assert cell.status == "error"
    good = ByTask(answers={"judge_verdicts": verdicts(1, 1, 0, 0)})
    cell = await get_metric("faithfulness").measure(*row(), Judge(good, "none", cache=cache))
    assert (cell.value, cell.calls) == (0.5, 1)


async def test_strictness_3_with_a_cache_asks_3_times(tmp_path: Path) -> None:
    """Each repetition has a reply of its own, in the cache too."""
    llm = ByTask(answers={"judge_question": GUESSES})
    vectors = FixedVectors({**GUESSED, "Q0?": [0.0, 1.0]})
    cache = tmp_path / "c.sqlite"
    cell = await get_metric("answer_relevancy").measure(*row(), Judge(llm, vectors, cache=cache))
    assert cell.calls == 3
    assert cell.value == pytest.approx(2 / 3)
    assert sorted(each["question"] for each in cell.details["questions"]) == ["Q0?", "Q1?", "Q2?"]
    again = await get_metric("answer_relevancy").measure(*row(), Judge(llm, vectors, cache=cache))
    assert again.calls == 0
    assert again.value == cell.value
    assert len(vectors.batches) == 1


async def test_abatch_score_is_not_used_and_one_429_loses_one_cell() -> None:
    """Ragas gathers without a limit, and one failure loses the batch."""

    def reply(request: Any) -> Any:
        return error(429) if "Row 3" in request.prompt else served(faithful(1, 0))(request)

    with OpenAIServer([reply]) as server:
        llm = ChatOpenAI(model="m", base_url=server.url, api_key="sk-1")
        judge = Judge(llm, "none", max_concurrency=4, max_retries=0)
        metric = get_metric("faithfulness")
        rows = [row(answer=f"Row {n} is so.") for n in range(8)]
        cells = await asyncio.gather(*(metric.measure(*each, judge) for each in rows))
    assert [cell.status for cell in cells] == ["ok"] * 3 + ["error"] + ["ok"] * 4
    assert "429" in cells[3].reason or "rate" in cells[3].reason.lower()


@pytest.mark.parametrize("model", [ByTask, ToolJudge])
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("context_precision", {"judge_context": {"reason": "r", "verdict": 2}}),
        (
            "context_recall",
            {"judge_recall": {"classifications": [{"statement": "S.", "reason": "", "attributed": 5}]}},
        ),
        ("faithfulness", {"judge_statements": split(1), "judge_verdicts": verdicts(7)}),
        ("answer_relevancy", {"judge_question": {"question": "Q?", "noncommittal": -1}}),
    ],
)
async def test_no_range_check(model: Any, name: str, answers: dict[str, Any]) -> None:
    """Ragas makes 2.0 of a verdict of 2, and 5.0 of an attribution of 5; here it is mended or an error."""
    repaired = model(answers={**answers, "repair_json": "still not"})
    cell = await measured(name, repaired, FixedVectors({"What is it?": UNIT}))
    assert (cell.status, cell.value) == ("error", None)
    assert "must be one of" in cell.reason


async def test_a_verdict_out_of_range_is_mended_by_the_repair() -> None:
    """One repair is allowed."""
    llm = ByTask(answers={"judge_context": {"verdict": 2}, "repair_json": {"reason": "r", "verdict": 1}})
    cell = await measured("context_precision", llm)
    assert cell.value == pytest.approx(1.0, abs=1e-9)


async def test_a_value_out_of_range_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Ragas's class returns."""
    ragas = await load_ragas("the test")
    from ragas.metrics.result import MetricResult

    async def ascore(self: Any, **_: Any) -> Any:
        return MetricResult(value=2.0)

    monkeypatch.setattr(ragas.ContextRecall, "ascore", ascore)
    cell = await measured("context_recall", ByTask(answers={}))
    assert (cell.status, cell.value) == ("error", None)


@pytest.mark.parametrize("model", [ByTask, ToolJudge])
async def test_denominator_is_the_statements_and_not_the_verdicts_emitted(model: Any) -> None:
    """4 statements with 2 verdicts are 1.0 for Ragas; here the other two are asked for, else it is an error."""
    poor = model(answers={"judge_statements": split(4), "judge_verdicts": verdicts(1, 1)})
    cell = await measured("faithfulness", poor)
    assert (cell.status, cell.value) == ("error", None)
    assert "2 verdicts for 4 statements" in cell.reason
    late = [verdicts(1, 1), verdicts(1, 0, names="cd")]
    mending = model(answers={"judge_statements": split(4), "judge_verdicts": late})
    cell = await measured("faithfulness", mending)
    assert (cell.value, cell.calls) == (0.75, 3)
    asked = mending.asked[-1][1]
    assert "Statement c." in asked and "Statement a." not in asked


async def test_denominator_with_verdicts_on_something_else() -> None:
    """Verdicts too many: those that were asked for count, each once."""
    given = verdicts(1, 0, 1, names="axb")
    cell = await measured(
        "faithfulness", ByTask(answers={"judge_statements": split(2), "judge_verdicts": given})
    )
    assert (cell.value, len(cell.details["statements"])) == (1.0, 2)


async def test_denominator_of_factual_correctness() -> None:
    """The same for claims."""
    llm = ByTask(
        answers={"judge_claims": {"claims": ["A.", "B.", "C."]}, "judge_verdicts": verdicts(1, names="A")}
    )
    cell = await measured("factual_correctness", llm)
    assert cell.status == "error"


async def test_denominator_of_answer_correctness() -> None:
    """4 statements of which the judge sorts one: the others are asked for, else it is an error."""
    one = {"TP": [{"statement": "Statement a.", "reason": ""}], "FP": [], "FN": []}
    answers: dict[str, Any] = {"judge_statements": split(4), "judge_correctness": one}
    cell = await measured("answer_correctness", ByTask(answers=answers), FixedVectors({"It is so.": UNIT}))
    assert (cell.status, cell.value) == ("error", None)
    rest = {"TP": [], "FP": [{"statement": f"Statement {n}.", "reason": ""} for n in "bcd"], "FN": []}
    answers = {"judge_statements": split(4), "judge_correctness": [one, rest]}
    cell = await measured("answer_correctness", ByTask(answers=answers), FixedVectors({"It is so.": UNIT}))
    precision = 0.25
    f1 = 2 * precision / (precision + 1)
    assert cell.value == pytest.approx(0.75 * f1 + 0.25)


async def test_a_statement_in_two_lists_is_asked_for_again() -> None:
    """Right and wrong at once is neither."""
    both = {"TP": [{"statement": "Statement a."}], "FP": [{"statement": "Statement a."}], "FN": []}
    wrong = {"TP": [], "FP": [{"statement": "Statement a."}], "FN": []}
    answers = {"judge_statements": split(1), "judge_correctness": [both, wrong]}
    cell = await measured("answer_correctness", ByTask(answers=answers), FixedVectors({"It is so.": UNIT}))
    assert cell.value == pytest.approx(0.25)


async def test_denominator_of_context_recall() -> None:
    """A sentence of the reference that the judge leaves out is asked for, else it is an error."""
    reference = "Emma is a novel. Bath is a town in England."
    one = {"classifications": [{"statement": "Emma is a novel.", "attributed": 1}]}
    cell = await measured("context_recall", ByTask(answers={"judge_recall": one}), reference=reference)
    assert (cell.status, cell.value) == ("error", None)
    rest = {"classifications": [{"statement": "Bath is a town in England.", "attributed": 0}]}
    cell = await measured(
        "context_recall", ByTask(answers={"judge_recall": [one, rest]}), reference=reference
    )
    assert (cell.value, cell.calls) == (0.5, 2)


@pytest.mark.parametrize("whose", ["answer", "reference"])
async def test_answer_correctness_with_an_empty_statement_list(whose: str) -> None:
    """A perfect match for Ragas; no value here."""

    def given(prompt: Any) -> dict[str, Any]:
        return split(0 if ("Hello" in prompt.body) == (whose == "answer") else 2)

    llm = ByTask(answers={"judge_statements": given})
    vectors = FixedVectors({"Hello.": UNIT, "It is so.": UNIT})
    cell = await measured("answer_correctness", llm, vectors, answer="Hello.")
    assert (cell.status, cell.value) == ("undefined", None)
    assert whose in cell.reason


@pytest.mark.parametrize("contexts", [[], [""], ["  \n"]], ids=["none", "empty", "blank"])
@pytest.mark.parametrize("name", [name for name, kind in METRICS.items() if "passages" in kind.output_needs])
async def test_empty_contexts(name: str, contexts: list[str]) -> None:
    """Ragas raises ValueError on each question for which nothing was retrieved; here the value is 0."""
    llm = ByTask(answers={"judge_statements": split(2)})
    cell = await measured(name, llm, contexts=contexts)
    assert (cell.status, cell.value) == ("ok", 0.0)
    if not contexts:
        assert cell.reason == "no passage was retrieved"


@pytest.mark.parametrize("name", [name for name in METRICS if name != "semantic_similarity"])
async def test_context_relevance_swallows_errors_no_metric_here_does(name: str) -> None:
    """A judge that fails always gives an error with its reason, never NaN and never a number."""
    llm = ByTask(
        answers=dict.fromkeys((task for task in METRICS[name].prompts), RuntimeError("no such luck"))
    )
    cell = await measured(name, llm, FixedVectors(GUESSED))
    assert (cell.status, cell.value) == ("error", None)
    assert "no such luck" in cell.reason


async def test_context_precision_epsilon() -> None:
    """0.5 comes out as 0.49999999995; compared with 1e-9 it is 0.5."""
    llm = ByTask(answers={"judge_context": [{"verdict": 0}, {"verdict": 1}]})
    cell = await measured("context_precision", llm, contexts=["A.", "B."])
    assert cell.value == pytest.approx(0.5, abs=1e-9)
    assert cell.value != 0.5, "Ragas has changed its epsilon; say so in the docs"


class Meeting(Embeddings):
    """Embeddings whose requests wait for each other: they end only if so many are under way at once."""

    def __init__(self, parties: int) -> None:
        self.parties = parties
        self.waiting = 0
        self.together = asyncio.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Must not be called on the loop."""
        raise AssertionError("embedded synchronously")

    def embed_query(self, text: str) -> list[float]:
        """Must not be called."""
        raise AssertionError("embedded synchronously")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Wait for the others."""
        self.waiting += 1
        if self.waiting == self.parties:
            self.together.set()
        await asyncio.wait_for(self.together.wait(), 20)
        return [UNIT for _ in texts]


async def test_semantic_similarity_embeds_without_blocking() -> None:
    """20 rows embed at the same time, natively async; Ragas would do 40 requests one after the other."""
    embeddings = Meeting(20)
    judge = Judge(ByTask(answers={}), embeddings, max_concurrency=20)
    metric = get_metric("semantic_similarity")
    cells = await asyncio.gather(*(metric.measure(*row(answer=f"A{n}."), judge) for n in range(20)))
    assert {cell.value for cell in cells} == {1.0}
    assert embeddings.waiting == 20


async def test_score_inside_a_running_loop() -> None:
    """Ragas's score() raises there, its old evaluate() patches asyncio; here one awaits, and nothing is patched."""
    cell = await measured("faithfulness", ByTask(answers=faithful(1, 0)))
    assert cell.value == 0.5
    assert not hasattr(asyncio, "_nest_patched")
    assert asyncio.run.__module__ == "asyncio.runners"


def test_telemetry_is_off_before_ragas_is_imported() -> None:
    """No thread of Ragas's runs, and nothing would be sent."""
    asyncio.run(load_ragas("the test"))
    assert os.environ["RAGAS_DO_NOT_TRACK"] == "true"
    from ragas._analytics import do_not_track

    assert do_not_track()


async def test_openai_embeddings_on_compatible_servers() -> None:
    """They are sent as texts in one request; no tokenizer is downloaded."""
    with OpenAIServer() as server:
        from rag_kit.models import embedding_model

        embeddings = embedding_model("openai:small", base_url=server.url, api_key="sk-1")
        judge = Judge(ByTask(answers={}), embeddings)
        cell = await get_metric("semantic_similarity").measure(*row(answer="It was so."), judge)
        assert cell.status == "ok"
        (request,) = [each for each in server.requests if each.path.endswith("/embeddings")]
        assert request.body["input"] == ["It is so.", "It was so."]


class Together(ByTask):
    """A judge whose replies wait until so many requests are under way."""

    parties: int = 3
    waiting: list[str] = []

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.waiting.append("")
        for _ in range(2000):
            if len(self.waiting) >= self.parties:
                return self._reply(messages)
            await asyncio.sleep(0.01)
        raise AssertionError(f"only {len(self.waiting)} requests at once")


@pytest.mark.parametrize(
    ("name", "parties", "answers"),
    [
        ("context_precision", 5, {"judge_context": {"verdict": 1}}),
        ("answer_relevancy", 3, {"judge_question": GUESSES}),
        ("answer_correctness", 2, {"judge_statements": split(0)}),
        ("factual_correctness", 2, {"judge_claims": {"claims": []}}),
    ],
)
async def test_calls_per_row_are_made_side_by_side(name: str, parties: int, answers: dict[str, Any]) -> None:
    """Ragas asks one after the other where nothing depends on the reply before."""
    llm = Together(answers=answers, parties=parties)
    cell = await measured(name, llm, FixedVectors(GUESSED), contexts=[f"P{n}." for n in range(5)])
    assert cell.status in ("ok", "undefined"), cell
    assert cell.calls == parties


def test_chinese_prompts_are_chinese_through_and_through() -> None:
    """Ragas's adapt() leaves the JSON skeleton English; here its descriptions are Chinese, its names the same."""
    for metric in METRICS.values():
        for name in metric.prompts:
            english, chinese = load_prompt(name, language="en"), load_prompt(name, language="zh")
            assert isinstance(chinese.output_schema, dict) and isinstance(english.output_schema, dict)
            said = json.dumps(chinese.output_schema, ensure_ascii=False)
            told = json.dumps(english.output_schema, ensure_ascii=False)
            descriptions = [part.split('"')[0] for part in said.split('"description": "')[1:]]
            assert descriptions and all(any("\u4e00" <= c <= "\u9fff" for c in each) for each in descriptions)
            assert said.count('"description"') == told.count('"description"')


async def test_chinese_questions_are_guessed_in_chinese() -> None:
    """English guesses ruin the cosine: for a Chinese question the Chinese prompt asks for Chinese."""
    llm = ByTask(answers={"judge_question": {"question": "谁写的？", "noncommittal": 0}})
    vectors = FixedVectors({"谁写了《呼兰河传》？": UNIT, "谁写的？": UNIT})
    judge = Judge(llm, vectors)
    cell = await AnswerRelevancy(strictness=1).measure(
        *row(question="谁写了《呼兰河传》？", answer="Xiao Hong wrote it."), judge
    )
    assert cell.value == 1.0
    assert list(judge._prompts) == [("judge_question", "zh")]


async def test_no_guess_at_all_is_no_zero() -> None:
    """Ragas gives 0.0 where the judge guesses no question."""
    llm = ByTask(answers={"judge_question": {"question": " ", "noncommittal": 0}})
    cell = await measured("answer_relevancy", llm, FixedVectors(GUESSED))
    assert (cell.status, cell.value) == ("undefined", None)


@pytest.mark.parametrize("name", ["answer_relevancy", "answer_correctness", "semantic_similarity"])
async def test_without_an_embedding_model(name: str) -> None:
    """Not applicable, and the reason says what to do; nobody is asked."""
    cell = await measured(name, ByTask(answers={}))
    assert cell.status == "not_applicable"
    assert "embedding" in cell.reason


@pytest.mark.parametrize("vector", [[0.0, 0.0], [], [float("nan"), 1.0]], ids=["zero", "empty", "nan"])
async def test_vectors_without_a_cosine(vector: list[float]) -> None:
    """An error, where Ragas gives NaN."""
    cell = await measured("semantic_similarity", ByTask(answers={}), FixedVectors({"It is so.": vector}))
    assert cell.status == "error"


@pytest.mark.parametrize("name", list(METRICS))
async def test_a_spy_proves_that_ragas_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value is what ``ascore`` of Ragas's class returns."""
    ragas = await load_ragas("the test")
    from ragas.metrics.result import MetricResult

    kinds = {"context_precision": "ContextPrecision"}
    kind = getattr(ragas, kinds.get(name, "".join(part.title() for part in name.split("_"))))
    called: list[str] = []

    async def spy(self: Any, **_: Any) -> Any:
        called.append(type(self).__name__)
        return MetricResult(value=0.321)

    monkeypatch.setattr(kind, "ascore", spy)
    answers = {
        "judge_statements": split(1), "judge_verdicts": verdicts(1), "judge_context": {"verdict": 1},
        "judge_question": GUESSES, "judge_claims": {"claims": ["Statement a."]},
    }  # fmt: skip
    cell = await measured(name, ByTask(answers=answers), FixedVectors(GUESSED))
    assert (cell.value, called) == (0.321, [kind.__name__]), cell


def test_nothing_is_left_running() -> None:
    """After a measurement no thread waits that would keep the process from ending."""
    asyncio.run(measured("faithfulness", ByTask(answers=faithful(1))))
    assert all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())


async def test_errors_name_what_is_wrong() -> None:
    """The adapter raises the kit's own errors."""
    from rag_kit.evaluation.judge import Calls
    from rag_kit.evaluation.scorers.ragas_judged.statements import verdicts_call

    llm = ByTask(answers={"judge_verdicts": verdicts(1)})
    with pytest.raises(ModelOutputError, match="1 verdicts for 2 statements"):
        await Calls(Judge(llm, "none"), "en").take(verdicts_call("c", ["A.", "B."]))
