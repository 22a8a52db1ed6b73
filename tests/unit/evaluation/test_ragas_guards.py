"""Guards against known faults of Ragas 0.4.3, each beside the result of a bare object of Ragas's."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

import pytest
from support.by_task import ByTask
from support.judging import FixedVectors, row, split, verdicts

from rag_kit.errors import ModelUnreachableError
from rag_kit.evaluation import Example, Judge
from rag_kit.evaluation.cells import Summary
from rag_kit.evaluation.judge.adapter import ragas_llm
from rag_kit.evaluation.judge.ragas_table import ROWS
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.ragas_metric import RagasMetric
from rag_kit.evaluation.scorers import get_metric

VECTORS = FixedVectors({"It is so.": [1.0, 0.0], "What is it?": [1.0, 0.0], "": [1.0, 0.0]})


def bare(name: str, judge: Judge) -> Any:
    """An object of Ragas's, with the judge as its LLM and none of the guards."""
    import ragas.metrics.collections as collections

    made = ROWS[name]
    kind = getattr(collections, made.ragas_class)
    takes = inspect.signature(kind).parameters
    parts = {part: ragas_llm(judge) for part in ("llm", "embeddings") if part in takes}
    return kind(**parts, **made.settings)


def judge_of(answers: dict[str, Any]) -> Judge:
    """A judge that answers so."""
    return Judge(ByTask(answers=answers, asked=[]), VECTORS, max_retries=0)


GIVEN = {
    "user_input": "What is it?",
    "response": "It is so.",
    "reference": "It is so.",
    "retrieved_contexts": ["P."],
}
MANY = {"reason": "r", "statement": "s"}
ONE = {"TP": [MANY], "FP": [], "FN": []}


@pytest.mark.parametrize(
    ("name", "answers", "ragas", "message"),
    [
        ("faithfulness", {"StatementGeneratorOutput": split(4), "NLIStatementOutput": verdicts(1, 1)}, 1.0,
         "2 verdicts for 4 statements"),
        ("faithfulness", {"StatementGeneratorOutput": split(1), "NLIStatementOutput": verdicts(7)}, 1.0, "verdict 7"),
        ("factual_correctness", {"ClaimDecompositionOutput": {"claims": ["a", "b"]}, "NLIStatementOutput": verdicts(1)},
         1.0, "1 verdicts for 2 statements"),
        ("context_precision", {"ContextPrecisionOutput": {"reason": "r", "verdict": 2}}, 2.0, "verdict 2"),
        ("context_recall", {"ContextRecallOutput": {"classifications": [{**MANY, "attributed": 5}]}}, 5.0,
         "attributed 5"),
        ("answer_correctness", {"StatementGeneratorOutput": split(3), "ClassificationWithReason": ONE}, 1.0,
         "1 places for 3 statements of the answer"),
        ("answer_relevancy", {"AnswerRelevanceOutput": {"question": "", "noncommittal": 0}}, 0.0, "empty question"),
        ("context_relevance", {"ContextRelevanceOutput": {"rating": 9}}, math.nan, "rating 9"),
        ("rubrics", {"RubricScoreOutput": {"feedback": "f", "score": 9}}, 9.0, "score 9; allowed are 1, 2, 3, 4, 5"),
    ],
)  # fmt: skip
async def test_a_reply_that_cannot_be_counted_is_asked_for_again_and_then_an_error(
    name: str, answers: dict[str, Any], ragas: float, message: str
) -> None:
    """Ragas counts it: 2 verdicts on 4 statements are 1.0, a verdict of 2 is 2.0."""
    metric = bare(name, judge_of(answers))
    given = {each: GIVEN[each] for each in inspect.signature(metric.ascore).parameters if each in GIVEN}
    value = (await metric.ascore(**given)).value
    assert value == pytest.approx(ragas, abs=1e-9, nan_ok=True)
    cell = await get_metric(name).measure(*row(contexts=["P."]), judge_of(answers))
    assert cell.status == "error" and cell.value is None
    assert message in cell.reason and "asked twice" in cell.reason


async def test_the_second_reply_counts_and_only_that_one_is_kept(tmp_path: Any) -> None:
    """A judge that left statements out once is asked once more; the next run finds the right reply alone."""
    answers = {"StatementGeneratorOutput": split(2), "NLIStatementOutput": [verdicts(1), verdicts(1, 0)]}
    llm = ByTask(answers=answers, asked=[])
    judge = Judge(llm, "none", cache=tmp_path / "c.sqlite")
    cell = await get_metric("faithfulness").measure(*row(), judge)
    assert (cell.value, cell.calls) == (0.5, 3)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("faithfulness", "ok"), ("context_precision", "ok"), ("context_precision_without_reference", "ok"),
        ("context_recall", "ok"), ("context_entity_recall", "ok"), ("context_relevance", "ok"),
        ("response_groundedness", "ok"), ("noise_sensitivity", "undefined"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("question", ["What is it?", "这是什么？"])
async def test_where_nothing_was_retrieved_the_value_is_0_and_nobody_is_asked(
    name: str, status: str, question: str
) -> None:
    """Ragas raises a ValueError; noise cannot mislead where there is none."""
    cell = await get_metric(name).measure(*row(question=question, contexts=[]), judge_of({}))
    assert (cell.status, cell.value) == (status, 0.0 if status == "ok" else None)
    assert cell.reason.startswith("no passage was retrieved") and cell.calls == 0


DECLINING = {
    "faithfulness", "response_groundedness", "noise_sensitivity", "noise_sensitivity_irrelevant", "quoted_spans",
    "context_precision_without_reference",
}  # fmt: skip


@pytest.mark.parametrize("contexts", [[], ["A passage."]])
@pytest.mark.parametrize("answer", ["The documents do not contain the answer [1].", "文档中没有答案。"])
@pytest.mark.parametrize("name", sorted(DECLINING))
async def test_an_answer_that_declines_has_no_value_where_statements_are_judged(
    name: str, answer: str, contexts: list[str]
) -> None:
    """Ragas gives 0 to a right decline; here it is undefined, nobody is asked, and the summary counts it."""
    cell = await get_metric(name).measure(*row(answer=answer, contexts=contexts), judge_of({}))
    assert (cell.status, cell.calls) == ("undefined", 0) and "declines" in cell.reason
    assert Summary.of([cell], 1).undefined == 1


def test_which_metrics_skip_a_decline_is_said_by_each() -> None:
    """In what a metric says of itself, which manifests keep; the status of a graph counts as well as its words."""
    skipping = {name for name in ROWS if get_metric(name).describe()["skips_declined"]}
    assert skipping == DECLINING
    assert Output(answer="Sorry.", status="declined").declined and not Output(answer="Ada.").declined


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("It is so [1]. It is long【2, 3】.", "It is so. It is long."),
        ("它很长[1]。它很深［2］。", "它很长。它很深。"),
        ("See note [7] of the text.", "See note [7] of the text."),
    ],
)
@pytest.mark.parametrize(
    "name", ["faithfulness", "answer_correctness", "answer_relevancy", "response_groundedness"]
)
async def test_ragas_reads_answers_without_marks_of_citations(name: str, answer: str, read: str) -> None:
    """The marks are no part of a statement; a mark that the passages themselves have is."""
    llm = ByTask(answers={}, asked=[])
    output = Output.of({"answer": answer, "documents": ["As in note [7] of the text."]})
    await get_metric(name).measure(row(answer=answer)[0], output, Judge(llm, FixedVectors({})))
    asked = llm.asked[0][1]
    assert json.dumps(read)[1:-1] in asked or read in asked
    assert "[1]" not in asked and "[2" not in asked


async def test_earlier_turns_stand_before_the_question_but_for_answer_relevancy() -> None:
    """A judge knows what "it" is; questions that are compared as vectors stay single questions."""
    turn = {"question": "Where is the Rhine?", "answer": "In Europe."}
    example = Example("q", "How long is it?", reference="Long.", history=(turn,))
    output = Output.of({"answer": "It is long.", "documents": ["It is long."]})
    for name in ("faithfulness", "context_recall", "answer_correctness", "answer_relevancy"):
        llm = ByTask(answers={}, asked=[])
        await get_metric(name).measure(example, output, Judge(llm, FixedVectors({})))
        assert ("Where is the Rhine?" in llm.asked[0][1]) == (name != "answer_relevancy"), name
    vectors = FixedVectors({})
    reply = {"AnswerRelevanceOutput": {"question": "Which?", "noncommittal": 0}}
    await get_metric("answer_relevancy").measure(
        example, output, Judge(ByTask(answers=reply, asked=[]), vectors)
    )
    assert ["How long is it?"] in vectors.batches


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("faithfulness", {"StatementGeneratorOutput": split(0)}),
        ("answer_correctness", {"StatementGeneratorOutput": split(0)}),
        ("noise_sensitivity", {"StatementGeneratorOutput": split(0), "NLIStatementOutput": verdicts()}),
        ("factual_correctness", {"ClaimDecompositionOutput": {"claims": []}}),
        ("context_recall", {"ContextRecallOutput": {"classifications": []}}),
        ("context_entity_recall", {"EntitiesList": {"entities": []}}),
    ],
)
async def test_where_there_is_nothing_to_judge_there_is_no_value(name: str, answers: dict[str, Any]) -> None:
    """Ragas gives 1.0 (answer correctness), 0.0, NaN, or fails."""
    cell = await get_metric(name).measure(*row(), judge_of(answers))
    assert (cell.status, cell.value) == ("undefined", None), cell.reason
    if name == "answer_correctness":
        value = (await bare(name, judge_of(answers)).ascore("What is it?", "It is so.", "It is so.")).value
        assert value == 1.0


@pytest.mark.parametrize("name", ["context_relevance", "response_groundedness", "answer_accuracy"])
async def test_a_failure_that_ragas_swallows_is_an_error(name: str) -> None:
    """Ragas asks ten times and gives NaN; here the first failure ends it, with its reason."""
    llm = ByTask(answers={}, asked=[])
    for title in ("ContextRelevanceOutput", "ResponseGroundednessOutput", "AnswerAccuracyOutput"):
        llm.answers[title] = ModelUnreachableError("gone away")
    cell = await get_metric(name).measure(*row(), Judge(llm, "none", max_retries=0))
    assert cell.status == "error" and "gone away" in cell.reason
    assert len(llm.asked) == 1


async def test_an_assistant_that_rightly_declines_every_topic_has_no_adherence() -> None:
    """Ragas gives 0."""
    from ragas.messages import HumanMessage

    answers = {
        "TopicExtractionOutput": {"topics": ["gossip"]}, "TopicRefusedOutput": {"refused_to_answer": True},
        "TopicClassificationOutput": {"classifications": [False]},
    }  # fmt: skip
    example = Example("q", "?", metadata={"reference_topics": ["rivers"]})
    output = Output.of({"messages": [{"role": "user", "content": "Gossip?"}]})
    cell = await get_metric("topic_adherence").measure(example, output, judge_of(answers))
    assert cell.status == "undefined"
    metric = bare("topic_adherence", judge_of(answers))
    assert (await metric.ascore([HumanMessage(content="Gossip?")], ["rivers"])).value == 0.0


async def test_metrics_without_a_judge_are_guarded_too() -> None:
    """No call on either side, no common column, no CSV: no value; Chinese: the reason says it."""
    none = Example("q", "?", metadata={"reference_tool_calls": []})
    quiet = Output.of({"messages": [{"role": "user", "content": "Hi."}]})
    assert (await get_metric("tool_call_f1").measure(none, quiet)).status == "undefined"
    table = Example("q", "?", reference="a,b\n1,2\n")
    for said in ("x,y\n1,2\n", "no\n1,2,3\n4,5,6,7\n"):
        assert (await get_metric("data_comparison").measure(table, Output(answer=said))).status == "undefined"
    same = Example("q", "?", reference="今天天气很好"), Output(answer="今天天气很好")
    for name in ("bleu", "rouge_l"):
        cell = await get_metric(name).measure(*same)
        assert cell.value == 0.0 and f"ours_{name}" in cell.reason


async def test_several_right_answers_count_where_a_text_is_looked_for() -> None:
    """The best of reference and ``answers``."""
    example = Example("q", "?", reference="Paris, France", answers=("Paris",))
    assert (await get_metric("exact_match").measure(example, Output(answer="Paris"))).value == 1.0
    assert (await get_metric("string_presence").measure(example, Output(answer="In Paris."))).value == 1.0


async def test_vectors_that_are_missing_are_said() -> None:
    """A judge without embeddings; weights that need none ask for none."""
    judge = Judge(
        ByTask(answers={"StatementGeneratorOutput": split(1), "ClassificationWithReason": ONE}), "none"
    )
    cell = await get_metric("answer_correctness").measure(*row(), judge)
    assert cell.status == "not_applicable" and "embedding" in cell.reason
    facts = RagasMetric("answer_correctness", "facts", weights=[1.0, 0.0])
    assert (await facts.measure(*row(), judge)).value == 1.0


async def test_a_scale_of_ones_own_sets_the_range() -> None:
    """Count attributes of a metric, and of an example."""
    llm = ByTask(answers={"RubricScoreOutput": {"feedback": "f", "score": 10}})
    metric = RagasMetric("rubrics", rubrics={0: "Wrong.", 10: "Right."})
    assert (metric.low, metric.high) == (0.0, 10.0)
    assert (await metric.measure(*row(), Judge(llm, "none"))).value == 10.0
    llm = ByTask(answers={"InstanceRubricScoreOutput": {"feedback": "f", "score": 0}})
    example = Example("q", "?", metadata={"rubrics": {0: "Wrong.", 10: "Right."}})
    own = RagasMetric("instance_rubrics")
    own.low, own.high = 0.0, 10.0
    assert (await own.measure(example, Output(answer="x"), Judge(llm, "none"))).value == 0.0


async def test_messages_and_tables_are_read_in_the_forms_that_people_have() -> None:
    """Chunks of a stream, OpenAI's tool calls, rows as objects; what is none of these is an error that names it."""
    call = {"name": "search", "args": {"n": 1}}
    function = {"function": {"name": "search", "arguments": '{"n": 1}'}}
    talk = Output.of({"messages": [{"type": "AIMessageChunk", "content": "x", "tool_calls": [call]}]})
    for calls in ([call], [function]):
        example = Example("q", "?", metadata={"reference_tool_calls": calls})
        assert (await get_metric("tool_call_accuracy").measure(example, talk)).value == 1.0
    table = Example("q", "?", metadata={"reference_table": [{"a": 1, "b": 2}]})
    assert (await get_metric("data_comparison").measure(table, Output(answer="a,b\n1,2\n"))).value == 1.0
    wrong = Example("q", "?", metadata={"reference_tool_calls": "s", "reference_topics": "rivers"})
    for name, said in (("tool_call_f1", "tool_calls"), ("topic_adherence", "list of texts")):
        cell = await get_metric(name).measure(wrong, talk, judge_of({}))
        assert cell.status == "error" and said in cell.reason
