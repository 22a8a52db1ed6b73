"""The metrics of Ragas that the kit knows by name, and what is done about known faults of Ragas 0.4.3.

The marks of citations are taken out of an answer before Ragas reads it, earlier turns stand before a question, and an
answer that declines is ``undefined`` where its statements are held against passages (Ragas gives 0). Whatever is not
caught here has the value that Ragas gives. NaN is ``undefined``, never a number; a failure of the judge that Ragas
swallows is an ``error``; a reply that `reply_fault` finds wrong is asked for once more, then it is an ``error`` too
(Ragas would count a verdict of 2 as 2, and divide 2 verdicts on 4 statements by 2).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_kit.evaluation.cells import Cell, Stage

_BINARY = ("verdict", "attributed", "noncommittal")  # fields of a reply that hold 0 or 1


@dataclass(frozen=True)
class RagasRow:
    """A class of Ragas's, described so that it can be used before Ragas is imported, which takes seconds."""

    ragas_class: str  # its name in ragas.metrics.collections
    stage: Stage
    needs: tuple[str, ...] = ()  # columns that an example or an output must have
    llm: bool = True
    embeddings: bool = False
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)  # what the class is made with
    # argument of ascore -> another column that it is given
    reads: Mapping[str, str] = field(default_factory=dict)
    best_of: bool = False  # whether each of the example's answers counts as a reference
    ahead: tuple[str, ...] = ()  # columns whose vectors are fetched ahead: Ragas embeds them without awaiting
    guard: Callable[[Mapping[str, Any]], Cell | None] = lambda values: None  # a cell instead of a wrong value
    foreign: str = ""  # what to take instead, where the texts are not written in ASCII letters

    @property
    def skips_declined(self) -> bool:
        """Whether the metric checks an answer's statements: an answer that declines states nothing."""
        return {"response", "retrieved_contexts"} <= set(self.needs)

    def cell_without_ragas(self, values: Mapping[str, Any]) -> Cell | None:
        """Return a cell where Ragas would raise or be wrong (nothing was retrieved); else ``None``: ask Ragas."""
        judges_passages = self.llm and self.stage in ("retrieval", "generation")
        has_passages = bool(values.get("retrieved_contexts", True))  # True: the metric does not read them
        if has_passages or not judges_passages:
            return self.guard(values)
        if self.higher_is_better:
            return Cell.ok(0.0, "no passage was retrieved")
        return Cell.undefined("no passage was retrieved, so none can mislead")

    def remark(self, values: Mapping[str, Any]) -> str:
        """Return a warning that Ragas's value is off if the reference has other letters than ASCII; else ""."""
        if not self.foreign:
            return ""
        is_foreign = any(sign.isalnum() and not sign.isascii() for sign in values["reference"])
        return f"Ragas's words are those between blanks; see {self.foreign}" if is_foreign else ""


def reply_fault(data: Any, reply: Any, scores: Sequence[int] = ()) -> str | None:
    """Say why Ragas cannot compute with a reply to the input ``data``, or ``None``; ``scores``: those that are allowed.

    Example:
        >>> from types import SimpleNamespace as Fields
        >>> reply_fault(Fields(statements=["a", "b"]), Fields(statements=[Fields(verdict=1)]))
        'it gave 1 verdicts for 2 statements'
        >>> reply_fault(None, Fields(verdict=2))
        'it gave the verdict 2; allowed are 0, 1'
    """
    if fault := _count_fault(data, reply):
        return fault
    ratings = (0, 2, 4) if hasattr(data, "reference_answer") else (0, 1, 2)  # (0, 2, 4): answer accuracy
    items = [item for value in vars(reply).values() if isinstance(value, list) for item in value]
    # object, its field, values that are allowed there
    checks: list[tuple[Any, str, Sequence[Any]]] = [(reply, "rating", ratings), (reply, "score", scores)]
    checks[:0] = [(item, name, (0, 1, "0", "1")) for item in (reply, *items) for name in _BINARY]
    for item, name, allowed in checks:
        value = getattr(item, name, None)
        if allowed and value is not None and value not in allowed:
            choices = ", ".join(dict.fromkeys(map(str, allowed)))
            return f"it gave the {name} {value!r:.40}; allowed are {choices}"
    # answer relevancy asks for the question that an answer answers; an evasive one may answer none
    is_guess = hasattr(reply, "question") and hasattr(reply, "noncommittal")
    if is_guess and not str(reply.question).strip() and not reply.noncommittal:
        return "it gave an empty question"
    return None


def _count_fault(data: Any, reply: Any) -> str | None:
    """Say which list of a reply is too short or too long for the input (see `_EQUALLY_LONG`); ``None`` if none is."""
    for input_name, reply_names, description in _EQUALLY_LONG:
        asked: Any = getattr(data, input_name, None)
        lists: list[Any] = [getattr(reply, name, None) for name in reply_names]
        if isinstance(asked, list) and all(isinstance(items, list) for items in lists):
            count = sum(map(len, lists))
            # a statement of the answer may be in both of TP and FP
            is_too_long = count > len(asked) and input_name != "answer"
            if count < len(asked) or is_too_long:
                return f"it gave {count} {description.format(len(asked))}"
    return None


#: List in a prompt's input -> lists in the reply that must have as many items together, and their description.
_EQUALLY_LONG = (
    ("statements", ("statements",), "verdicts for {} statements"),
    ("topics", ("classifications",), "classifications of {} topics"),
    ("questions", ("answers",), "answers to {} questions"),
    ("answer", ("TP", "FP"), "places for {} statements of the answer"),
)


def reason_for_no_value(replies: Sequence[Any]) -> str | None:
    """Return why Ragas's value means nothing, from the judge's replies; ``None`` if it has a meaning.

    Ragas takes an answer that states nothing for a perfect match, divides by zero, or gives 0 where a reference names
    nothing, and to an assistant that rightly declines everything.
    """
    for reply in replies:
        names = ["statements", "claims", "keyphrases", "questions"]
        if reply is replies[0]:  # with the entities of the reference; the second has those of the passages
            names.append("entities")
        for name in names:
            if getattr(reply, name, None) == []:
                return f"the judge found no {name}, so there is nothing to judge"
    refused = [bool(reply.refused_to_answer) for reply in replies if hasattr(reply, "refused_to_answer")]
    on_topic = [is_allowed for reply in replies for is_allowed in getattr(reply, "classifications", ())]
    if refused and on_topic and all(refused) and not any(on_topic):
        return "no topic that came up is allowed, and none was answered"
    return None


def _check_calls(arguments: Mapping[str, Any]) -> Cell | None:
    """Return an undefined cell if no tool was called and none was expected, else ``None``."""
    has_calls = any(getattr(message, "tool_calls", None) for message in arguments["user_input"])
    if has_calls or arguments["reference_tool_calls"]:
        return None
    return Cell.undefined("no call was made, and none was expected")


def _check_tables(arguments: Mapping[str, Any]) -> Cell | None:
    """Return an undefined cell if the two CSV tables have no column in common, else ``None``."""
    import pandas

    try:
        tables = [pandas.read_csv(io.StringIO(arguments[name])) for name in ("reference", "response")]
    except (ValueError, RecursionError):  # not parsed: Ragas gives NaN with the reason
        return None
    expected, answered = ({str(name).lower() for name in table.columns} for table in tables)
    return None if expected & answered else Cell.undefined("the tables have no column in common")


# columns that several rows need
_ASKED = ("user_input", "response")
_ANSWER = (*_ASKED, "retrieved_contexts")
_GOLD = ("user_input", "reference", "retrieved_contexts")
_PAIR = ("reference", "response")
_BOTH = (*_ASKED, "reference")
_CALLS = ("messages", "reference_tool_calls")
_CODE = ("response_code", "reference_code")
_TABLE = ("response_code", "reference_table")
_CONTEXTS = ("response", "retrieved_contexts")
_TALK = ("messages",)
_SQL = {"response": "response_code", "reference": "reference_code", "reference_contexts": "schema"}
_CSV = {"response": "response_code", "reference": "reference_table"}

_NOISE = RagasRow("NoiseSensitivity", "generation", (*_ANSWER, "reference"), higher_is_better=False)
_ROUGE = RagasRow("RougeScore", "end_to_end", _PAIR, llm=False, foreign="ours_rouge_l")
_DATA = RagasRow("DataCompyScore", "agent", _TABLE, llm=False, reads=_CSV, guard=_check_tables)
_TOOLS = RagasRow("ToolCallAccuracy", "agent", _CALLS, llm=False)

ROWS: dict[str, RagasRow] = {
    "faithfulness": RagasRow("Faithfulness", "generation", _ANSWER),
    "answer_relevancy": RagasRow(
        "AnswerRelevancy", "generation", _ASKED, embeddings=True, low=-1.0, reads={"user_input": "question"}
    ),
    "context_precision": RagasRow("ContextPrecisionWithReference", "retrieval", _GOLD),
    "context_precision_without_reference": RagasRow("ContextPrecisionWithoutReference", "retrieval", _ANSWER),
    "context_recall": RagasRow("ContextRecall", "retrieval", _GOLD),
    "context_entity_recall": RagasRow(
        "ContextEntityRecall", "retrieval", ("reference", "retrieved_contexts")
    ),
    "context_relevance": RagasRow("ContextRelevance", "retrieval", ("user_input", "retrieved_contexts")),
    "answer_accuracy": RagasRow("AnswerAccuracy", "end_to_end", _BOTH),
    "answer_correctness": RagasRow("AnswerCorrectness", "end_to_end", _BOTH, embeddings=True, low=-0.25),
    "factual_correctness": RagasRow("FactualCorrectness", "end_to_end", _PAIR),
    "semantic_similarity": RagasRow(
        "SemanticSimilarity", "end_to_end", _PAIR, llm=False, embeddings=True, low=-1.0, ahead=_PAIR
    ),
    "noise_sensitivity": _NOISE,
    "noise_sensitivity_irrelevant": replace(_NOISE, settings={"mode": "irrelevant"}),
    "response_groundedness": RagasRow("ResponseGroundedness", "generation", _CONTEXTS),
    "summary_score": RagasRow("SummaryScore", "generation", ("response", "reference_contexts")),
    "quoted_spans": RagasRow("QuotedSpansAlignment", "generation", _CONTEXTS, llm=False),
    "rubrics": RagasRow("DomainSpecificRubrics", "end_to_end", _ASKED, low=1.0, high=5.0),
    "rubrics_with_reference": RagasRow("RubricsScoreWithReference", "end_to_end", _BOTH, low=1.0, high=5.0),
    "instance_rubrics": RagasRow(
        "InstanceSpecificRubrics", "end_to_end", (*_ASKED, "rubrics"), low=1.0, high=5.0
    ),
    "bleu": RagasRow("BleuScore", "end_to_end", _PAIR, llm=False, foreign="ours_bleu"),
    "rouge_1": replace(_ROUGE, settings={"rouge_type": "rouge1"}),
    "rouge_2": replace(_ROUGE, settings={"rouge_type": "rouge2"}),
    "rouge_l": replace(_ROUGE, settings={"rouge_type": "rougeL"}),
    "chrf": RagasRow("CHRFScore", "end_to_end", _PAIR, llm=False),
    "exact_match": RagasRow("ExactMatch", "end_to_end", _PAIR, llm=False, best_of=True),
    "string_presence": RagasRow("StringPresence", "end_to_end", _PAIR, llm=False, best_of=True),
    "string_similarity": RagasRow("NonLLMStringSimilarity", "end_to_end", _PAIR, llm=False),
    "tool_call_accuracy": _TOOLS,
    "tool_call_accuracy_flexible": replace(_TOOLS, settings={"strict_order": False}),
    "tool_call_f1": RagasRow("ToolCallF1", "agent", _CALLS, llm=False, guard=_check_calls),
    "agent_goal_accuracy": RagasRow(
        "AgentGoalAccuracyWithReference", "agent", ("messages", "goal"), reads={"reference": "goal"}
    ),
    "agent_goal_accuracy_without_reference": RagasRow("AgentGoalAccuracyWithoutReference", "agent", _TALK),
    "topic_adherence": RagasRow("TopicAdherence", "agent", ("messages", "reference_topics")),
    "sql_equivalence": RagasRow("SQLSemanticEquivalence", "agent", _CODE, reads=_SQL),
    "data_comparison": _DATA,
    "data_comparison_columns": replace(_DATA, settings={"mode": "columns"}),
}
#: Class -> the row of its first name.
CLASSES = {row.ragas_class: row for row in reversed(ROWS.values())}
