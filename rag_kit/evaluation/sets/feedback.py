"""Exports of runs with what users thought of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets import files, values
from rag_kit.text import detect_language, fold
from rag_kit.text.citations import is_declined

Thumb = Literal["up", "down", "mixed"]
_UP = frozenset({"up", "thumbs_up", "thumbs-up", "thumbsup", "thumb_up", "positive", "like", "liked", "good", "yes",
                 "true", "correct", "helpful", "1", "+1", "1.0", "👍", "赞", "点赞", "好", "满意", "有用"})  # fmt: skip
_DOWN = frozenset({"down", "thumbs_down", "thumbs-down", "thumbsdown", "thumb_down", "negative", "dislike", "disliked",
                   "bad", "no", "false", "incorrect", "unhelpful", "0", "-1", "0.0", "-1.0", "👎", "踩", "差", "不好",
                   "不满意", "没用"})  # fmt: skip
_THUMBS = ("thumbs", "thumb", "feedback", "user_feedback", "user_score", "score", "rating", "vote", "value")
_CORRECTIONS = ("correction", "corrected_answer", "correct_answer", "expected", "reference", "ground_truth")
_COMMENTS = ("comment", "comments", "explanation", "note")
_INPUTS = ("inputs", "input", "question", "query")
_OUTPUTS = ("outputs", "output", "answer", "response")
_QUESTION = ("question", "input", "query", "user_input", "prompt")
_ANSWER = ("answer", "output", "result", "response", "text", "content")
_ID = ("run_id", "trace_id", "id")
_CITATION = re.compile(r"\s*\[\d{1,4}\](?!\()")
_SKINS = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")


@dataclass
class _Case:
    """All runs that asked the same."""

    question: str
    history: list[dict[str, str]]
    up: dict[str, int] = field(default_factory=dict)
    down: dict[str, int] = field(default_factory=dict)
    corrections: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    mixed: bool = False
    #: Thumbs on runs that answered nothing: they say how it was received, and are no reference.
    unanswered: set[str] = field(default_factory=set)

    @property
    def rated(self) -> bool:
        """Whether somebody said something of it."""
        return bool(self.up or self.down or self.corrections or self.mixed or self.unanswered)

    def example(self) -> Example:
        """The thumbs of all runs weighed."""
        ups, downs = bool(self.up) or "up" in self.unanswered, bool(self.down) or "down" in self.unanswered
        disputed = self.mixed or bool(set(self.up) & set(self.down))
        good = [answer for answer in self.up if answer not in self.down]
        best = max(good, key=lambda answer: self.up[answer]) if good else None
        reference = self.corrections[-1] if self.corrections else best
        rated = "mixed" if disputed or (ups and downs) else "up" if ups else "down" if downs else "none"
        metadata = {
            "runs": self.runs,
            "rejected": list(self.down),
            "comments": self.comments,
            "also_liked": [answer for answer in good if answer != reference],
            "corrected": bool(self.corrections),
        }
        return Example(
            values.made_id(
                self.question, *(f"{turn['question']}\n{turn['answer']}" for turn in self.history)
            ),
            self.question,
            reference=reference,
            answerable=None if reference is None else not is_declined(reference),
            history=tuple(self.history),
            tags={"feedback": rated, "language": detect_language(self.question)},
            metadata={name: value for name, value in metadata.items() if value},
        )


def examples_of(path: Path, encoding: str, keep_unrated: bool) -> list[Example]:
    """The examples of an export; see `EvaluationSet.from_feedback`."""
    table = path.name.removesuffix(".gz").lower().endswith(files.TABLES)
    records = files.csv_records(path, encoding, None) if table else files.json_records(path, encoding)
    kept = [case for case in _cases(records, table) if keep_unrated or case.rated]
    if not kept:
        raise InvalidInputError(
            f"{path.name} holds no run with a thumb; it needs one of {', '.join(_THUMBS)}, "
            "or say keep_unrated=True"
        )
    return [case.example() for case in kept]


def _cases(records: Iterable[files.Record], spelled: bool) -> list[_Case]:
    cases: dict[str, _Case] = {}
    for where, raw in records:
        record = {key: values.plain_cell(value) for key, value in raw.items()}
        if spelled:
            record = {key: values.parsed(value, where, key) for key, value in record.items()}
        question, history = _asked(record, where)
        key = values.made_id(fold(question).strip(), *(fold(str(turn)) for turn in history))
        case = cases.setdefault(key, _Case(question, history))
        if run := _first(record, _ID):
            case.runs.append(str(run))
        answer, readable = _answered(record)
        for thumb, correction, comment in _opinions(record, where):
            if comment:
                case.comments.append(comment)
            if correction:
                case.corrections.append(correction)
            if thumb == "mixed":
                case.mixed = True
            elif thumb and answer:
                group = case.up if thumb == "up" else case.down
                group[answer] = group.get(answer, 0) + 1
            elif thumb and readable:
                case.unanswered.add(thumb)
            elif thumb:
                raise InvalidInputError(
                    f"{where}: the run has a thumb, and in its outputs {_first(record, _OUTPUTS)!r:.120} there is no "
                    f"answer; give a text, or an object with one of {', '.join(_ANSWER)}"
                )
    return list(cases.values())


def _asked(record: Mapping[str, Any], where: str) -> tuple[str, list[dict[str, str]]]:
    inputs = _first(record, _INPUTS)
    history: Any = record.get("history")
    if isinstance(inputs, Mapping):
        history = inputs.get("history") or inputs.get("chat_history") or history
        text = _first(inputs, _QUESTION)
        inputs = text if text is not None else inputs.get("messages")
    if isinstance(inputs, list):
        flat = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list) else inputs
        places = [place for place, item in enumerate(flat) if values.message(item)[0] == "question"]
        if places:
            earlier = [item for item in flat[: places[-1]] if values.message(item)[0] is not None]
            return values.message(flat[places[-1]])[1].strip(), values.turns(earlier, where)
    if not isinstance(inputs, str) or not inputs.strip():
        raise InvalidInputError(
            f"{where}: the run has no question; give inputs with question, input, query or messages "
            f"(it has {', '.join(map(str, record)) or 'nothing'})"
        )
    return inputs.strip(), values.turns(history, where) if history else []


def _answered(record: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The run's answer, and whether its outputs could be read: a run that failed has none, and that is no fault."""
    outputs = given = _first(record, _OUTPUTS)
    if isinstance(outputs, Mapping):
        text = _first(outputs, _ANSWER)
        outputs = text if text is not None else outputs.get("messages")
    if isinstance(outputs, Mapping):
        outputs = values.message(outputs)[1] or None
    if isinstance(outputs, list):
        turns = list(map(values.message, outputs))
        said = [content for role, content in turns if role == "answer"]
        outputs = said[-1] if said else "" if any(role for role, _ in turns) else None
    if isinstance(outputs, (int, float)) and not isinstance(outputs, bool):
        outputs = str(outputs)
    if not isinstance(outputs, str):
        return None, not given
    # The marks of citations belong to the passages of that run.
    return _CITATION.sub("", outputs).strip() or None, True


def _opinions(record: Mapping[str, Any], where: str) -> list[tuple[Thumb | None, str | None, str | None]]:
    stats = record.get("feedback_stats")
    if isinstance(stats, Mapping) and stats:
        thumb = _of_stats(stats, where)
        if thumb is not None:
            return [(thumb, None, None)]
    given = next((record[name] for name in _THUMBS if record.get(name) is not None), None)
    items = given if isinstance(given, list) else [given]
    by_users = [item for item in items if isinstance(item, Mapping) and _is_users(item.get("key"))]
    items = by_users or items
    found = []
    for item in items:
        inner = item if isinstance(item, Mapping) else {"thumb": item}
        thumb = next((inner[name] for name in ("thumb", *_THUMBS) if inner.get(name) is not None), None)
        known = ("key", "thumb", *_THUMBS, *_CORRECTIONS, *_COMMENTS)
        if inner and not any(name in inner for name in known):
            raise InvalidInputError(
                f"{where}: the feedback {inner!r:.120} holds none of {', '.join(dict.fromkeys(known[1:]))}"
            )
        source = inner if isinstance(given, list) else {**record, **inner}
        correction = _first(source, _CORRECTIONS)
        wished = correction
        if isinstance(correction, Mapping):
            correction = _first(correction, _ANSWER)
        if isinstance(correction, int | float) and not isinstance(correction, bool):
            correction = str(correction)
        if wished is not None and not isinstance(correction, str):
            raise InvalidInputError(
                f"{where}: the correction is {wished!r:.80}; give a text, or an object with one of {', '.join(_ANSWER)}"
            )
        comment = _first(source, _COMMENTS)
        found.append(
            (
                _thumb(thumb, where),
                correction.strip() if isinstance(correction, str) else None,
                comment if isinstance(comment, str) else None,
            )
        )
    return found


def _of_stats(stats: Mapping[str, Any], where: str) -> Thumb | None:
    """LangSmith's summary: a key with ``n`` and the mean ``avg`` of its scores."""
    scores = [
        (name, each["avg"]) for name, each in stats.items()
        if isinstance(each, Mapping) and isinstance(each.get("avg"), (int, float))
    ]  # fmt: skip
    users = [score for name, score in scores if _is_users(name)]
    chosen = users or [score for _, score in scores]
    if not chosen:
        return None
    if all(score == 1 for score in chosen):
        return "up"
    return "down" if all(score in (0, -1) for score in chosen) else "mixed"


def _is_users(key: Any) -> bool:
    """Whether a key of feedback is a person's; others are of automatic evaluators."""
    return isinstance(key, str) and any(word in key.casefold() for word in ("user", "thumb"))


def _thumb(value: Any, where: str) -> Thumb | None:
    if value is None:
        return None
    word = _SKINS.sub("", str(value)).strip().casefold()
    if word in _UP or word in _DOWN:
        return "up" if word in _UP else "down"
    raise InvalidInputError(
        f"{where}: the thumb is {value!r:.80}; give up or down, 1 or 0 or -1, true or false (turn stars into these)"
    )


def _first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
