"""The metrics of Ragas that the kit knows by name, what they read, and what is done about faults of Ragas 0.4.3.

The marks of citations are taken out of an answer before Ragas reads it, earlier turns stand before a question, and an
answer that declines is ``undefined`` where its statements are held against passages (Ragas gives 0). Whatever is not
caught here has the value that Ragas gives. NaN is ``undefined``, never a number; a failure of the judge that Ragas
swallows is an ``error``; a reply that `reply_fault` finds wrong is asked for once more, then it is an ``error`` too
(Ragas would count a verdict of 2 as 2, and divide 2 verdicts on 4 statements by 2).
"""

from __future__ import annotations

import inspect
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell, Stage
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.text.citations.check import renumber

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
        is_judged = self.llm and self.stage in ("retrieval", "generation")
        if not is_judged or values.get("retrieved_contexts", True):
            return self.guard(values)
        if not self.higher_is_better:
            return Cell.undefined("no passage was retrieved, so none can mislead")
        return Cell.ok(0.0, "no passage was retrieved")

    def remark(self, values: Mapping[str, Any]) -> str:
        """Return a warning that Ragas's value is off for texts of other letters than ASCII; "" for others."""
        if not self.foreign or not any(sign.isalnum() and not sign.isascii() for sign in values["reference"]):
            return ""
        return f"Ragas's words are those between blanks; see {self.foreign}"


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
    verdicts = [(holder, name, (0, 1, "0", "1")) for holder in (reply, *items) for name in _BINARY]
    for holder, name, allowed in (*verdicts, (reply, "rating", ratings), (reply, "score", scores)):
        value = getattr(holder, name, None)
        if allowed and value is not None and value not in allowed:
            choices = ", ".join(dict.fromkeys(map(str, allowed)))
            return f"it gave the {name} {value!r:.40}; allowed are {choices}"
    # answer relevancy asks for the question that an answer answers; an evasive one may answer none
    is_guess = hasattr(reply, "question") and hasattr(reply, "noncommittal")
    if is_guess and not str(reply.question).strip() and not reply.noncommittal:
        return "it gave an empty question"
    return None


def _count_fault(data: Any, reply: Any) -> str | None:
    """Say which list of a reply is too short or too long for the input; ``None`` if none is."""
    for asked_name, names, description in _EQUALLY_LONG:
        asked: Any = getattr(data, asked_name, None)
        received: list[Any] = [getattr(reply, name, None) for name in names]
        if isinstance(asked, list) and all(isinstance(items, list) for items in received):
            count = sum(map(len, received))
            may_repeat = asked_name == "answer"  # TP and FP may both hold a statement; none may be left out
            if count < len(asked) or (count > len(asked) and not may_repeat):
                return f"it gave {count} {description.format(len(asked))}"
    return None


#: List in a prompt's input -> lists in the reply that must have as many items together, and their description.
_EQUALLY_LONG = (
    ("statements", ("statements",), "verdicts for {} statements"),
    ("topics", ("classifications",), "classifications of {} topics"),
    ("questions", ("answers",), "answers to {} questions"),
    ("answer", ("TP", "FP"), "places for {} statements of the answer"),
)


def no_value(replies: Sequence[Any]) -> str | None:
    """Return why Ragas's value means nothing, from the judge's replies; ``None`` if it has a meaning.

    Ragas takes an answer that states nothing for a perfect match, divides by zero, or gives 0 where a reference names
    nothing, and to an assistant that rightly declines everything.
    """
    for position, reply in enumerate(replies):
        of_reference = ("entities",) if position == 0 else ()  # the second reply has those of the passages
        for name in ("statements", "claims", "keyphrases", "questions", *of_reference):
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


#: Such as "```sql\nSELECT 1\n```".
_FENCED = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<code>.*?)\n?\s*(?P=fence)\s*", re.DOTALL)
_SCORE = re.compile(r"(?:score)?\s*(-?\d{1,3})(?:_description)?")  # "3", "score 3", "score3_description"


def needs_of(columns: Iterable[str], *, best_of: bool = False) -> dict[str, frozenset[str]]:
    """Return ``example_needs``, ``output_needs`` and ``example_any`` of a `Metric` that reads these columns."""
    needs: dict[str, set[str]] = {"example_needs": set(), "output_needs": set(), "example_any": set()}
    for column in columns:
        in_metadata = ("example_needs", f"metadata.{column}", None)
        attribute, fields, _ = _COLUMNS.get(column, in_metadata)
        if best_of and column == "reference":
            attribute, fields = "example_any", "reference answers"
        needs[attribute].update(fields.split())
    return {attribute: frozenset(fields) for attribute, fields in needs.items()}


def read_column(name: str, example: Example, output: Output) -> Any:
    """Return a column's value, ``None`` for none; an unknown column is a key of the example's metadata."""
    if name not in _COLUMNS:
        return example.metadata.get(name)
    _, _, read = _COLUMNS[name]
    try:
        return read(example, output)
    except InvalidInputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise InvalidInputError(f"what the metric reads as {name} has another form: {error!r:.300}") from None


def unfence(text: str) -> str:
    """Return the text inside a code fence; a text without one as it is."""
    match = _FENCED.fullmatch(text)
    return match["code"] if match else text


def rubric(levels: Any) -> dict[str, str]:
    """Return a scale (score -> description) with the keys that Ragas wants, in the order of the scores.

    Example:
        >>> rubric({2: "Right.", "score1_description": "Wrong."})
        {'score1_description': 'Wrong.', 'score2_description': 'Right.'}
    """
    entries = dict(levels) if isinstance(levels, Mapping) else {}
    by_score: dict[int, str] = {}
    for key, text in entries.items():
        match = _SCORE.fullmatch(str(key))
        if match and isinstance(text, str) and text:
            by_score[int(match[1])] = text
    if not 2 <= len(by_score) == len(entries):
        raise InvalidInputError(
            f"rubrics are {levels!r:.120}; give 2 scores or more, each with a text, such as "
            "{1: 'Wrong.', 3: 'Right.'}"
        )
    return {f"score{score}_description": text for score, text in sorted(by_score.items())}


def scores_of(rubrics: Mapping[str, str]) -> list[int]:
    """Return the scores of a scale with Ragas's keys; empty for other keys."""
    matches = [_SCORE.fullmatch(key) for key in rubrics]
    return [int(match[1]) for match in matches if match] if all(matches) else []


def arguments_of(metric: Any) -> dict[str, tuple[str, bool]]:
    """Map each argument of a metric's ``ascore`` to the column it reads, and to whether it must be given."""
    arguments = {}
    for name, parameter in inspect.signature(metric.ascore).parameters.items():
        if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            # a user_input that is a list of messages is the conversation
            is_talk = name == "user_input" and "Message" in str(parameter.annotation)
            arguments[name] = ("messages" if is_talk else name, parameter.default is parameter.empty)
    return arguments


def _ragas_messages(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Turn dicts with ``type`` (LangChain) or ``role`` into Ragas's messages; system messages are left out."""
    from langchain_core.messages import convert_to_messages
    from ragas.messages import AIMessage, HumanMessage, ToolMessage

    converted: list[Any] = []
    for message in messages:
        calls = _ragas_tool_calls(message.get("tool_calls") or [])
        role = str(message.get("type") or message.get("role"))
        role = role.replace("MessageChunk", "").lower()  # "AIMessageChunk" is "ai", streamed
        # LangChain refuses a message of a tool without an id
        chat = convert_to_messages([{"role": role, "content": message.get("content"), "tool_call_id": ""}])[0]
        content = str(chat.text)
        if chat.type == "ai":
            converted.append(AIMessage(content=content, tool_calls=calls or None))
        elif chat.type == "human":
            converted.append(HumanMessage(content=content))
        elif chat.type in ("tool", "function"):
            converted.append(ToolMessage(content=content))
    return converted


def _ragas_tool_calls(calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Turn dicts ``{"name", "args"}``, or OpenAI's ``{"function": {"name", "arguments"}}``, into Ragas's tool calls."""
    from ragas.messages import ToolCall

    converted = []
    for call in calls:
        inner = call.get("function", call)
        args = inner.get("args", inner.get("arguments")) or {}
        args = json.loads(args) if isinstance(args, str) else dict(args)
        converted.append(ToolCall(name=inner["name"], args=args))
    return converted


def _reference_table(example: Example, _: Output) -> str:
    """Return ``metadata["reference_table"]``, else the reference, as CSV text."""
    table = example.metadata.get("reference_table", example.reference)
    if isinstance(table, str):
        return unfence(table)
    import pandas

    return str(pandas.DataFrame(list(table)).to_csv(index=False))


def _check_topics(topics: Any) -> list[str]:
    if not isinstance(topics, (list, tuple)) or not all(isinstance(topic, str) and topic for topic in topics):
        raise InvalidInputError(f"metadata['reference_topics'] is {topics!r:.80}; give a list of texts")
    return list(topics)


#: Column -> the attribute of a `Metric` that it belongs to, the fields that it needs there, and how it is read.
_COLUMNS: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "user_input": ("output_needs", "", lambda example, output: example.conversation),
    "question": ("output_needs", "", lambda example, output: example.question),
    "messages": ("output_needs", "messages", lambda example, output: _ragas_messages(output.messages)),
    "response": ("output_needs", "answer", lambda example, output: renumber(output.answer, {}, output.contexts)),
    "response_code": ("output_needs", "answer", lambda example, output: unfence(output.answer)),
    "retrieved_contexts": ("output_needs", "passages", lambda example, output: output.contexts),
    "reference": ("example_needs", "reference", lambda example, output: example.reference),
    "reference_code": ("example_needs", "reference", lambda example, output: unfence(example.reference)),
    "reference_contexts": (
        "example_needs", "reference_contexts", lambda example, output: list(example.reference_contexts) or None
    ),
    "goal": (
        "example_any", "reference metadata.reference_goal",
        lambda example, output: example.metadata.get("reference_goal", example.reference),
    ),
    "reference_table": ("example_any", "reference metadata.reference_table", _reference_table),
    "reference_tool_calls": (
        "example_needs", "metadata.reference_tool_calls",
        lambda example, output: _ragas_tool_calls(example.metadata["reference_tool_calls"]),
    ),
    "reference_topics": (
        "example_needs", "metadata.reference_topics",
        lambda example, output: _check_topics(example.metadata["reference_topics"]),
    ),
    "rubrics": ("example_needs", "metadata.rubrics", lambda example, output: rubric(example.metadata["rubrics"])),
    "schema": ("example_needs", "metadata.schema", lambda example, output: example.metadata.get("schema")),
}  # fmt: skip
