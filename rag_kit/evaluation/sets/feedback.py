"""Make examples of exported runs with the thumbs that users gave the answers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import JSON_FILES, TABLES, Record, first_few, has_ending
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets import records as reading
from rag_kit.evaluation.sets.records import WORDS, read_message
from rag_kit.text import detect_language, fold
from rag_kit.text.citations.check import renumber
from rag_kit.text.citations.decline import is_declined

_log = logging.getLogger(__name__)

_UP, _DOWN = frozenset(WORDS["up"]), frozenset(WORDS["down"])
#: Names of columns, best first.
_QUESTION, _ANSWER, _THUMBS = WORDS["question_columns"], WORDS["answer_columns"], WORDS["thumb_columns"]
_CORRECTIONS = WORDS["correction_columns"]
#: Whether somebody liked an answer, and whether somebody rejected one -> the tag of the example.
_FEEDBACK = {(True, True): "mixed", (True, False): "up", (False, True): "down", (False, False): "none"}


@dataclass
class _Case:
    """All runs with one question; ``liked`` and ``rejected`` count thumbs by answer, "" for a failed run."""

    question: str
    history: list[dict[str, str]]
    liked: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    corrections: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def example(self) -> Example:
        """Make the example; its reference is the last correction, else the most liked answer that nobody rejected."""
        liked = [answer for answer, _ in self.liked.most_common() if answer and answer not in self.rejected]
        reference = next(iter([*self.corrections[-1:], *liked]), None)
        rejected = [answer for answer in self.rejected if answer and answer != reference]
        metadata = {"runs": self.runs, "rejected": rejected}
        feedback = _FEEDBACK[bool(self.liked), bool(self.rejected)]
        return Example(
            reading.id_of(self.question, *(f"{turn['question']}\n{turn['answer']}" for turn in self.history)),
            self.question,
            reference=reference,
            answerable=None if reference is None else not is_declined(reference),
            history=tuple(self.history),
            tags={"feedback": feedback, "language": detect_language(self.question)},
            metadata={name: value for name, value in metadata.items() if value},
        )


def feedback_examples(records: Iterable[Record], source: str) -> list[Example]:
    """Read the examples of an export; see `EvaluationSet.from_feedback`."""
    cases: dict[str, _Case] = {}
    is_table, is_json = has_ending(source, TABLES), has_ending(source, JSON_FILES)
    for where, record in records:
        row = reading.plain_row(record, is_table=is_table)
        run = {reading.fold_name(name): cell for name, cell in row.items()}
        if not is_json:  # cells hold JSON
            run = {name: reading.parse_cell(cell, f"{where}: {name}") for name, cell in run.items()}
        question, history = _read_question(run, where)
        key = reading.id_of(fold(question).strip(), fold(str(history)))
        case = cases.setdefault(key, _Case(question, history))
        if run_id := _first_value(run, ("run_id", "trace_id", "id", "编号")):
            case.runs.append(str(run_id))
        answer = _read_answer(_first_value(run, _ANSWER), where)
        if corrected := _first_value(run, _CORRECTIONS):
            text = _read_answer(corrected, where)
            case.corrections.append(reading.read_text(text, f"{where}: the correction"))
        is_liked = _is_liked(_first_value(run, _THUMBS), where)
        if is_liked is not None:
            thumbs = case.liked if is_liked else case.rejected
            thumbs[answer] += 1
    rated = {key: case for key, case in cases.items() if case.liked or case.rejected or case.corrections}
    if unrated := [case.question for key, case in cases.items() if key not in rated]:
        _log.warning("%s: questions whose answers nobody rated are left out: %s", source, first_few(unrated))
    if not rated:
        raise InvalidInputError(f"{source} holds no run with a thumb; it needs one of {', '.join(_THUMBS)}")
    return [case.example() for case in rated.values()]


def _read_question(run: Mapping[str, Any], where: str) -> tuple[str, list[dict[str, str]]]:
    """Return question and earlier turns of a run; in a list of messages the last of the user is the question."""
    inputs = _first_value(run, _QUESTION)
    history = _first_value(run, ("history", "对话历史"))
    if isinstance(inputs, Mapping):
        history = _first_value(inputs, ("history", "chat_history")) or history
        inputs = _first_value(inputs, _QUESTION)
    if isinstance(inputs, list):
        # LangChain's runs have the messages in a list within the list
        messages = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list) else inputs
        history, inputs = None, None
        for position, item in enumerate(messages):
            role, text = read_message(item)
            if role == "question":  # overwritten by a later one
                history, inputs = messages[:position], text
    if not isinstance(inputs, str) or not inputs.strip():
        raise InvalidInputError(
            f"{where}: the run has no question; give inputs with question, input, query or messages "
            f"(it has {', '.join(map(str, run)) or 'nothing'})"
        )
    return inputs.strip(), reading.read_turns(history, where) if history else []


def _read_answer(outputs: Any, where: str) -> str:
    """Return the text of an answer, "" of a failed run, without citation marks, which are of that run's passages."""
    answer = outputs
    if isinstance(outputs, Mapping):
        answer = _first_value(outputs, _ANSWER) if outputs else ""
    if isinstance(answer, list):
        answer = _last_answer(answer)
    elif isinstance(answer, Mapping):
        _, answer = read_message(answer)
    if answer is None and outputs is not None:
        raise InvalidInputError(
            f"{where}: in {outputs!r:.120} there is no answer; give a text, or an object with one of "
            f"{', '.join(_ANSWER)}"
        )
    return renumber(str(answer or ""), {}).strip()


def _last_answer(items: list[Any]) -> str | None:
    """Return the last answer of a list of chat messages, "" if there is none; ``None`` if the items are no messages."""
    messages = [read_message(item) for item in items]
    if answers := [text for role, text in messages if role == "answer"]:
        return answers[-1]
    return "" if not messages or any(role for role, _ in messages) else None


def _is_liked(thumb: Any, where: str) -> bool | None:
    """Tell whether a thumb is up (👍, "thumbs-up", 1); ``None`` without one; refuse any other word."""
    if thumb is None:
        return None
    skin_tones = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
    word = str(thumb).strip(f"{skin_tones} ").casefold().replace("s-", "s_")  # thumbs-up
    if word in _UP or word in _DOWN:
        return word in _UP
    raise InvalidInputError(
        f"{where}: the thumb is {thumb!r:.80}; give up or down, 1 or 0 or -1, true or false (turn stars into these)"
    )


def _first_value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value of these names that is not ``None``; ``None`` if there is none."""
    return next((record[name] for name in names if record.get(name) is not None), None)
