"""Who computes a value: Ragas's class, ir-measures, or this kit; and nothing of Ragas that is known to be broken."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from support.by_task import ByTask
from support.judging import FixedVectors, row, split, verdicts

import rag_kit
from rag_kit.errors import MissingExtraError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge import Judge, load_ragas
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.scorers import METRICS, get_metric

OF_RAGAS = [name for name, place in METRICS.items() if place.startswith("ragas_")]
ISSUE = {
    "faithfulness", "answer_relevancy", "context_precision", "context_precision_without_reference", "context_recall",
    "context_entity_recall", "answer_correctness", "factual_correctness", "semantic_similarity", "noise_sensitivity",
    "response_groundedness", "bleu", "rouge_1", "rouge_2", "rouge_l", "chrf", "exact_match", "string_presence",
    "tool_call_accuracy", "tool_call_f1", "agent_goal_accuracy", "topic_adherence", "sql_equivalence",
    "data_comparison", "rubrics",
}  # fmt: skip
BESIDE = {
    "bleu": "ours_bleu", "rouge_1": "ours_rouge_1", "rouge_2": "ours_rouge_2", "rouge_l": "ours_rouge_l",
    "exact_match": "ours_exact_match", "string_presence": "ours_string_presence",
    "tool_call_accuracy": "ours_tool_call_accuracy", "tool_call_accuracy_flexible": "ours_tool_call_accuracy_flexible",
    "tool_call_f1": "ours_tool_call_f1", "data_comparison": "ours_data_comparison",
    "data_comparison_columns": "ours_data_comparison_columns", "context_entity_recall": "ours_context_entity_recall",
}  # fmt: skip
GUESS = {"question": "Q?", "noncommittal": 0}
SORTED_OUT = {"TP": [{"statement": "Statement a."}], "FP": [], "FN": []}
ANSWERS: dict[str, Any] = {
    "judge_statements": split(1), "judge_verdicts": verdicts(1), "judge_context": {"verdict": 1},
    "judge_question": GUESS, "judge_claims": {"claims": ["Statement a."]}, "judge_correctness": SORTED_OUT,
    "judge_recall": {"classifications": [{"statement": "It is so.", "reason": "", "attributed": 1}]},
    "judge_entities": {"entities": ["Paris"]}, "judge_groundedness": {"rating": 1},
    "judge_groundedness_again": {"rating": 1}, "judge_goal": {"user_goal": "g", "end_state": "e"},
    "judge_outcome": {"reason": "r", "verdict": 1}, "judge_topics": {"topics": ["a"]},
    "judge_refusal": {"refused_to_answer": False},
    "judge_topic_match": {"classifications": [{"topic": "a", "allowed": True}]},
    "judge_sql": {"response_explanation": "", "reference_explanation": "", "equivalent": True},
    "judge_rubric": {"feedback": "f", "score": 2},
}  # fmt: skip
CALL = {"name": "f", "args": {"a": 1}}
UNIT = [1.0, 0.0]


def everything(answer: str = "It is so.") -> tuple[Example, Output]:
    """A row on which every metric has something to compute."""
    table = {"reference_table": "n\n1\n", "reference_tool_calls": [CALL], "reference_topics": ["a"],
             "reference_goal": "g", "rubrics": {"1": "Bad.", "2": "Good."}}  # fmt: skip
    example = Example("q1", "What is it?", reference="It is so.", metadata=table)
    output = Output.of({"answer": answer, "documents": ["A passage."]})
    messages = ({"type": "human", "content": "Hi"}, {"type": "ai", "content": "x", "tool_calls": [CALL]})
    return example, dataclasses.replace(output, messages=messages)


def judge(answers: dict[str, Any] = ANSWERS) -> Judge:
    """A scripted one."""
    vectors = dict.fromkeys(("What is it?", "It is so.", "Q?", "n\n1\n"), UNIT)
    return Judge(ByTask(answers=answers), FixedVectors(vectors))


def test_every_metric_that_was_asked_for_is_there() -> None:
    """By name, from Ragas; each that is wrong for Chinese or broken has one of ours beside it, of the same fields."""
    assert set(OF_RAGAS) >= ISSUE
    for theirs, ours in BESIDE.items():
        one, other = get_metric(theirs), get_metric(ours)
        assert (one.source, other.source, one.stage) == ("ragas", "ours", other.stage)
        for field in (
            "example_needs",
            "example_any",
            "metadata_needs",
            "output_needs",
            "needs_judge",
            "low",
            "high",
        ):
            assert getattr(one, field) == getattr(other, field), (theirs, field)


@pytest.mark.parametrize("name", METRICS)
def test_names_say_who_computes(name: str) -> None:
    """``ours_`` is this kit's; of the others Ragas or ir-measures computes every one."""
    metric = get_metric(name.replace("@k", "@3"))
    place = METRICS[name].partition(".")[0]
    source = {"ragas_judged": "ragas", "ragas_more": "ragas", "ranking": "ir_measures"}.get(place, "ours")
    assert metric.source == source
    assert name.startswith("ours_") == (source == "ours")


@pytest.mark.parametrize("name", OF_RAGAS)
async def test_every_metric_without_a_prefix_is_computed_by_ragas(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spy in all classes of Ragas: one of them is asked, and what it returns, whatever it is, is the value."""
    ragas = await load_ragas("the test")
    from ragas.metrics.result import MetricResult

    metric, asked = get_metric(name), []
    expected = metric.low + 0.3125 * (metric.high - metric.low)

    async def spy(self: Any, **_: Any) -> Any:
        asked.append(type(self).__module__)
        return MetricResult(value=expected)

    for kind in {each for each in vars(ragas).values() if isinstance(each, type) and "ascore" in vars(each)}:
        monkeypatch.setattr(kind, "ascore", spy)
    monkeypatch.setattr("rag_kit.evaluation.scorers.ragas_more.noise.NoiseSensitivity.reason", lambda *_: "")
    cell = await metric.measure(*everything("n\n1\n" if "data" in name else "It is so."), judge())
    assert (cell.value, len(asked)) == (expected, 1), cell
    assert asked[0].startswith("ragas.metrics.collections")


@pytest.mark.parametrize("name", OF_RAGAS)
async def test_ragas_own_values_are_in_range_and_warn_of_nothing_deprecated(name: str) -> None:
    """Without a spy: the same row has a value; Ragas's deprecated faces are not touched."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cell = await get_metric(name).measure(
            *everything("n\n1\n" if "data" in name else "It is so."), judge()
        )
    assert cell.status == "ok", cell
    told = [str(each.message) for each in caught if "ragas" in (each.filename or "")]
    assert not [text for text in told if "deprecat" in text.lower()], told


def test_nothing_of_ragas_that_is_known_to_be_broken_is_used() -> None:
    """Its cache, its CSV files, its runner, its batches, its wrappers of LangChain are nowhere in the source."""
    broken = re.compile(
        r"ragas\.(?:cache|backends|evaluation|executor|experiment|integrations|run_config|dataset)\b"
        r"|from ragas import|abatch_score|LangchainLLMWrapper|LangchainEmbeddingsWrapper|llm_factory"
        r"|DiskCacheBackend|nest_asyncio"
    )
    root = Path(rag_kit.__file__).parent
    found = {
        f"{path.relative_to(root)}: {match[0]}"
        for path in root.rglob("*.py")
        for match in broken.finditer(path.read_text(encoding="utf-8"))
    }
    assert not found


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("faithfulness", 2), ("context_recall", 1), ("answer_correctness", 3), ("answer_relevancy", 3),
        ("context_precision", 4), ("context_precision_without_reference", 4), ("factual_correctness", 4),
        ("semantic_similarity", 0), ("noise_sensitivity", 11), ("context_entity_recall", 2),
        ("response_groundedness", 2), ("agent_goal_accuracy", 2), ("topic_adherence", 3), ("sql_equivalence", 1),
        ("rubrics", 1), ("ours_context_entity_recall", 1),
    ],
)  # fmt: skip
async def test_calls_per_row(name: str, calls: int) -> None:
    """As Ragas makes them: k for k passages, 3 guesses, one for each step; none is made twice, and all are counted."""
    example, output = everything()
    output = dataclasses.replace(
        output, passages=Output.of({"documents": [f"P{n}." for n in range(4)]}).passages, answer="It is so!"
    )
    vectors = dict.fromkeys(("What is it?", "It is so.", "It is so!", "Q?"), UNIT)
    example = dataclasses.replace(example, reference="It is so in Paris.")
    asked = Judge(ByTask(answers=ANSWERS), FixedVectors({**vectors, "It is so in Paris.": UNIT}))
    cell = await get_metric(name).measure(example, output, asked)
    assert cell.status == "ok", cell
    assert cell.calls == calls == asked.usage["calls"] == len(asked.llm.asked)
    assert cell.tokens == 15 * calls == asked.usage["tokens"]


@pytest.mark.parametrize(
    "name", [name for name in METRICS if get_metric(name.replace("@k", "@3")).needs_judge]
)
async def test_a_judge_that_fails_is_an_error_of_every_metric(name: str) -> None:
    """Never NaN, never a number, with the reason; ours and Ragas's alike."""

    class Failing(dict[str, Any]):
        def __missing__(self, task: str) -> Any:
            return RuntimeError(f"no such luck with {task}")

    llm = ByTask(answers={})
    object.__setattr__(llm, "answers", Failing())
    example, output = everything("It is so [1].")
    cell = await get_metric(name.replace("@k", "@3")).measure(
        example,
        output,
        Judge(llm, FixedVectors({"It is so.": UNIT, "It is so [1].": UNIT, "What is it?": UNIT})),
    )
    assert (cell.status, cell.value) == ("error", None)
    assert "no such luck" in cell.reason


WRONG: dict[str, dict[str, Any]] = {
    "factual_correctness": {"judge_verdicts": verdicts(2)},
    "noise_sensitivity": {"judge_verdicts": verdicts(-1)},
    "agent_goal_accuracy": {"judge_outcome": {"reason": "r", "verdict": 3}},
    "sql_equivalence": {
        "judge_sql": {"response_explanation": "", "reference_explanation": "", "equivalent": "perhaps"}
    },
    "topic_adherence": {"judge_refusal": {"refused_to_answer": 2}},
    "response_groundedness": {"judge_groundedness": {"rating": 3}},
    "rubrics": {"judge_rubric": {"feedback": "", "score": 6}},
    "context_entity_recall": {"judge_entities": {"entities": [5]}},
    "answer_correctness": {"judge_correctness": {"TP": ["Statement a."], "FP": [], "FN": []}},
}


@pytest.mark.parametrize("name", WRONG)
async def test_replies_out_of_range_are_errors_of_every_metric(name: str) -> None:
    """What no judge may say is mended once or is an error, and no number."""
    answers = {**ANSWERS, **WRONG[name], "repair_json": "still not"}
    cell = await get_metric(name).measure(*everything(), judge(answers))
    assert (cell.status, cell.value) == ("error", None), cell


async def test_noise_sensitivity_divides_by_the_statements_and_not_by_the_verdicts() -> None:
    """Three statements, one verdict: the others are asked for, and if they do not come it is an error."""
    answers = {**ANSWERS, "judge_statements": split(3), "judge_verdicts": verdicts(1)}
    cell = await get_metric("noise_sensitivity").measure(*everything(), judge(answers))
    assert (cell.status, cell.value) == ("error", None)
    assert "1 verdicts for 3 statements" in cell.reason


def test_on_another_event_loop() -> None:
    """Ragas's old runner raises on uvloop; a measurement does not care."""
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    measuring = get_metric("faithfulness").measure(*row(), judge())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(measuring).value == 1.0


@pytest.mark.parametrize(
    ("name", "package"), [("data_comparison", "datacompy"), ("bleu", "sacrebleu"), ("rouge_l", "rouge_score")]
)
async def test_a_package_that_ragas_cannot_import_is_named(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """datacompy 1 lacks what Ragas imports: the extra with the right version is named, not Ragas's ImportError."""
    await load_ragas("the test")
    for each in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, each, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[eval\]"):
        await get_metric(name).measure(*everything("n\n1\n"), judge())


def test_without_ragas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the metric is made; what is ours or ir-measures' needs none."""
    monkeypatch.setattr("rag_kit.evaluation.judge.ragas_import.find_spec", lambda _: None)
    for module in [each for each in sys.modules if each.partition(".")[0] == "ragas"]:
        monkeypatch.delitem(sys.modules, module)
    for name in METRICS:
        if METRICS[name].startswith("ragas_"):
            with pytest.raises(MissingExtraError, match=r"rag-kit\[eval\]"):
                get_metric(name)
        else:
            assert get_metric(name.replace("@k", "@3")).source != "ragas"
