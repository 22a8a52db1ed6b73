"""Exports of runs with what users thought of the answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import Record
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets.records import (
    content_id,
    parse_literal,
    plain_cell,
    read_message,
    read_text,
    read_turns,
)
from rag_kit.text import detect_language, fold
from rag_kit.text.citations.check import renumber
from rag_kit.text.citations.decline import is_declined

_UP = frozenset({"up", "thumbs_up", "positive", "like", "liked", "good", "yes", "true", "correct", "1", "+1", "1.0",
                 "👍", "赞", "点赞", "好", "满意", "有用"})  # fmt: skip
_DOWN = frozenset({"down", "thumbs_down", "negative", "dislike", "disliked", "bad", "no", "false", "incorrect", "0",
                   "-1", "0.0", "-1.0", "👎", "踩", "差", "不好", "不满意", "没用"})  # fmt: skip
_THUMBS = ("thumbs", "thumb", "feedback", "user_feedback", "user_score", "score", "rating", "vote", "value")
_CORRECTIONS = ("correction", "corrected_answer", "correct_answer", "expected", "reference", "ground_truth")
_COMMENTS = ("comment", "comments", "explanation", "note")
_QUESTION = ("inputs", "question", "input", "query", "user_input", "prompt", "messages")
_ANSWER = ("outputs", "answer", "output", "result", "response", "text", "content", "messages")


@dataclass
class _Case:
    """All runs that asked the same; answer -> thumbs, where an empty answer is a failed run."""

    question: str
    history: list[dict[str, str]]
    liked: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    corrections: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def example(self) -> Example:
        """Make the example; its reference is the last correction, else the answer most liked and never rejected."""
        liked = [answer for answer, _ in self.liked.most_common() if answer]
        undisputed = [answer for answer in liked if answer not in self.rejected]
        reference = [*self.corrections[-1:], *undisputed, None][0]
        metadata = {
            "runs": self.runs,
            "rejected": [answer for answer in self.rejected if answer and answer != reference],
            "comments": self.comments,
            "also_liked": [answer for answer in undisputed if answer != reference],
            "corrected": bool(self.corrections),
        }
        thumbs = [name for name, answers in (("up", self.liked), ("down", self.rejected)) if answers]
        feedback = "mixed" if len(thumbs) > 1 else (*thumbs, "none")[0]
        return Example(
            content_id(self.question, *(f"{turn['question']}\n{turn['answer']}" for turn in self.history)),
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
    table = not source.removesuffix(".gz").lower().endswith("jsonl")
    for where, record in records:
        run = {name: plain_cell(cell) for name, cell in record.items()}
        if table:
            run = {name: parse_literal(cell, f"{where}: {name}") for name, cell in run.items()}
        question, history = _read_question(run, where)
        case = cases.setdefault(
            content_id(fold(question).strip(), fold(str(history))), _Case(question, history)
        )
        if run_id := _first_value(run, ("run_id", "trace_id", "id")):
            case.runs.append(str(run_id))
        answer = _read_answer(_first_value(run, _ANSWER), where)
        for rating in _read_ratings(run):
            case.comments += [str(comment)] if (comment := _first_value(rating, _COMMENTS)) else []
            if wished := _first_value(rating, _CORRECTIONS):
                case.corrections.append(read_text(_read_answer(wished, where), f"{where}: the correction"))
            if (liked := _is_liked(_first_value(rating, _THUMBS), where)) is not None:
                (case.liked if liked else case.rejected)[answer] += 1
    rated = [case for case in cases.values() if case.liked or case.rejected or case.corrections]
    if not rated:
        raise InvalidInputError(f"{source} holds no run with a thumb; it needs one of {', '.join(_THUMBS)}")
    return [case.example() for case in rated]


def _read_question(run: Mapping[str, Any], where: str) -> tuple[str, list[dict[str, str]]]:
    """Return question and earlier turns of a run."""
    inputs, history = _first_value(run, _QUESTION), run.get("history")
    if isinstance(inputs, Mapping):
        history = _first_value(inputs, ("history", "chat_history")) or history
        inputs = _first_value(inputs, _QUESTION)
    if isinstance(inputs, list):
        talk = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list) else inputs
        positions = [position for position, item in enumerate(talk) if read_message(item)[0] == "question"]
        last = positions[-1] if positions else None
        history, inputs = (None, None) if last is None else (talk[:last], read_message(talk[last])[1])
    if not isinstance(inputs, str) or not inputs.strip():
        raise InvalidInputError(
            f"{where}: the run has no question; give inputs with question, input, query or messages "
            f"(it has {', '.join(map(str, run)) or 'nothing'})"
        )
    return inputs.strip(), read_turns(history, where) if history else []


def _read_answer(outputs: Any, where: str) -> str:
    """Return the text of an answer without citation marks, which belong to the passages of that run."""
    answer = (_first_value(outputs, _ANSWER) if outputs else "") if isinstance(outputs, Mapping) else outputs
    if isinstance(answer, list):
        turns = [read_message(item) for item in answer]
        valid = not turns or any(role for role, _ in turns)
        answer = next((text for role, text in reversed(turns) if role == "answer"), "" if valid else None)
    elif isinstance(answer, Mapping):
        answer = read_message(answer)[1]
    if answer is None and outputs is not None:
        raise InvalidInputError(
            f"{where}: in {outputs!r:.120} there is no answer; give a text, or an object with one of "
            f"{', '.join(_ANSWER)}"
        )
    return renumber(str(answer or ""), {}).strip()


def _read_ratings(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the ratings of a run; those of automatic evaluators only if no person rated it."""
    thumbs = _first_value(run, _THUMBS)
    if isinstance(thumbs, list):
        entries = [item if isinstance(item, Mapping) else {"score": item} for item in thumbs]
    else:
        is_rating = isinstance(thumbs, Mapping) and {*_THUMBS, *_CORRECTIONS, *_COMMENTS} & set(thumbs)
        rest = {name: value for name, value in run.items() if name not in _THUMBS}
        entries = [{**rest, **thumbs} if is_rating else run]
    people = [entry for entry in entries if re.search("user|thumb", str(entry.get("key")).casefold())]
    return people or entries


def _is_liked(thumb: Any, where: str) -> bool | None:
    """Tell whether a thumb is up; ``None`` without one."""
    skin_tones = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
    word = str(thumb).strip(f"{skin_tones} ").casefold().replace("s-", "s_")
    if thumb is None or word in _UP or word in _DOWN:
        return None if thumb is None else word in _UP
    raise InvalidInputError(
        f"{where}: the thumb is {thumb!r:.80}; give up or down, 1 or 0 or -1, true or false (turn stars into these)"
    )


def _first_value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
