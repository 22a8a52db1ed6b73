"""Passages that state different values of the same thing, as versions of a document do, and which is the newest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

from rag_kit.text.citations.tokens import tokens
from rag_kit.text.evidence.questions import Question, analyse, terms
from rag_kit.text.evidence.sentences import PassageText, SentenceCandidate, is_question, weight_of
from rag_kit.text.sentences import sentences
from rag_kit.text.values.reading import Value, find_values, same_value

MAX_SENTENCES, MAX_STATEMENTS = 1_000, 60  # looked at, and compared
_NUMBERED = re.compile(
    r"\b(?:v|ver|version|rev|revision|release|edition)[ ._-]?(?P<number>\d{1,4}(?:\.\d{1,4}){0,3})(?![\d.])"
    r"|第(?P<han>\d{1,3})[版稿]",
    re.IGNORECASE,
)
_BEFORE = ("draft", "proposal", "preliminary", "outdated", "superseded", "archived", "obsolete")
_AFTER = ("final", "approved", "adopted", "current")
_HAN_BEFORE = ("草案", "草稿", "征求意见稿", "讨论稿", "试行", "已废止", "旧版")
_HAN_AFTER = ("定稿", "终稿", "正式", "现行", "新版")
_STAGE = re.compile(
    rf"\b(?P<before>{'|'.join(_BEFORE)})\b|\b(?P<after>{'|'.join(_AFTER)})\b"
    rf"|(?P<han_before>{'|'.join(_HAN_BEFORE)})|(?P<han_after>{'|'.join(_HAN_AFTER)})",
    re.IGNORECASE,
)
_TIMES = ("date", "clock", "decade", "century", "quarter", "weekday", "calendar days", "ordinal")
_NO_MEASURE = (*_TIMES, "id")
_RELEVANT = 0.5  # share of the question's weight that a sentence with its title must have
_MIN_SHARED = 2
_ALIKE = 0.6  # share of the words of two sentences, or of two titles, that both have


class Version(NamedTuple):
    """How new a document is, as far as its title or text says so."""

    stage: int | None = None  # 0: a draft, 1: final
    date: str = ""
    number: tuple[int, ...] = ()
    label: str = ""  # all of it, for people


class VersionStatement(NamedTuple):
    """A sentence that states values, compared with those of other passages."""

    text: str
    passage_index: int  # from 0
    number: int  # of the passage in the prompt
    title: str
    version: Version
    words: frozenset[str]
    things: frozenset[str]  # the words for things: verbs vary freely in Chinese
    names: frozenset[str]
    values: tuple[Value, ...]
    times: tuple[Value, ...]
    subject: frozenset[str]
    shown: str  # the values as the sentence writes them


@dataclass(frozen=True)
class Disagreement:
    """Statements of several passages with different values of the same thing."""

    statements: tuple[VersionStatement, ...]

    @property
    def is_series(self) -> bool:
        """Whether each statement names a time that no other names."""
        pairs = combinations(self.statements, 2)
        return all(one.times and other.times and not _common(one.times, other.times) for one, other in pairs)

    @property
    def newest(self) -> VersionStatement | None:
        """The statement of the newest version; None where nothing says which that is."""
        for name in ("stage", "date", "number"):
            ranks = [getattr(statement.version, name) for statement in self.statements]
            all_known = not any(rank in (None, "", ()) for rank in ranks)
            if all_known and len(set(ranks)) > 1:
                newest = [one for one, rank in zip(self.statements, ranks, strict=True) if rank == max(ranks)]
                return newest[0] if len({one.shown for one in newest}) == 1 else None
        return None


def read_version(marks: Sequence[str]) -> Version:
    """Read the version of a document in the first of some texts that says one.

    Example:
        >>> read_version(["", "Travel policy v1.2 (draft)"])
        Version(stage=0, date='', number=(1, 2), label='v1.2, draft')
    """
    for text in marks:
        dates = [
            value for value in find_values(text) if value.dimension == "date" and value.key[:1].isdigit()
        ]
        number, stage = _NUMBERED.search(text), _STAGE.search(text)
        found = [(match.start(), match[0]) for match in (number, stage) if match]
        found += [(value.start, text[value.start : value.end]) for value in dates]
        if found:
            digits = (number["number"] or number["han"]) if number else ""
            return Version(
                None if stage is None else int(bool(stage["after"] or stage["han_after"])),
                max((value.key for value in dates), default=""),
                tuple(int(part) for part in digits.split(".") if part),
                ", ".join(dict.fromkeys(part for _, part in sorted(found))),
            )
    return Version()


def find_disagreements(question: str, passages: Sequence[PassageText]) -> list[Disagreement]:
    """Find what the passages that may answer a question state differently.

    Two sentences of different passages disagree if they say the same of the same thing but for their values. Sentences
    that name different times, names or identifiers speak of different things, and so do passages of different titles.

    Example:
        >>> texts = ["The hotel limit is 120 EUR per night.", "The hotel limit is now 150 EUR per night."]
        >>> passages = [PassageText(at, text, "Travel policy") for at, text in enumerate(texts, 1)]
        >>> [found] = find_disagreements("What is the hotel limit?", passages)
        >>> [statement.shown for statement in found.statements]
        ['120 EUR', '150 EUR']
    """
    analysed = analyse(question)
    left = list(islice(_relevant_statements(analysed, passages), MAX_STATEMENTS))
    found = []
    while left:
        first, *left = left
        group = [first]
        for other in left:
            apart = other.passage_index not in [one.passage_index for one in group]
            if apart and any(disagree(one, other, analysed) for one in group):
                group.append(other)
        if len(group) > 1:
            found.append(Disagreement(tuple(group)))
            left = [one for one in left if one not in group]
    return found


def settle_versions(
    question: Question,
    picked: Sequence[SentenceCandidate],
    candidates: Sequence[SentenceCandidate],
    passages: Sequence[PassageText],
) -> list[SentenceCandidate]:
    """Keep one of the picked sentences that state different values of the same thing: that of the newest version.

    Where nothing says which is the newest, or the question names a time, the first that was picked stays. Statements
    that each name a time of their own are a series, and all stay.
    """
    settled = list(picked)
    for found in find_disagreements(question.text, passages):
        texts = {(one.passage_index, one.text) for one in found.statements}
        rivals = [one for one in settled if (one.passage_index, one.text) in texts]
        if not rivals or found.is_series:
            continue
        newest = None if question.spans else found.newest
        wanted = (newest.passage_index, newest.text) if newest else None
        stays = next((one for one in candidates if (one.passage_index, one.text) == wanted), rivals[0])
        settled = [
            stays if one is rivals[0] else one for one in settled if one is rivals[0] or one not in rivals
        ]
    return list(dict.fromkeys(settled))


def _relevant_statements(question: Question, passages: Sequence[PassageText]) -> Iterator[VersionStatement]:
    """Yield the sentences that may answer the question and state a value, in reading order."""
    texts = ((n, span.text) for n, passage in enumerate(passages) for span in sentences(passage.text))
    for passage_index, text in islice(texts, MAX_SENTENCES):
        passage, said = passages[passage_index], question.keys & set(terms(text))
        if said and weight_of(question, said | question.keys & set(terms(passage.title))) >= _RELEVANT:
            statement = _statement(question, text, passage_index, passage)
            if statement is not None:
                yield statement


def _statement(question: Question, text: str, index: int, passage: PassageText) -> VersionStatement | None:
    """Read a sentence as a statement to compare; None where it asks, or states no value but times and identifiers."""
    if is_question(text):
        return None
    row = tokens(text)
    values = [token.value for token in row if token.value]
    asked = {value.normal for value in find_values(question.text)}
    measures = [value for value in values if value.dimension not in _NO_MEASURE and value.normal not in asked]
    times = [value for value in values if value.dimension in _TIMES]
    if question.kind == "when":
        measures, times = [value for value in times if value.normal not in asked], []
    if not measures:
        return None
    words = frozenset(token.key for token in row if token.content and not token.value)
    things = frozenset(token.key for token in row if token.thing and not token.value)
    names = {token.key for token in row if token.name}
    shown = ", ".join(text[value.begin : value.end].strip() for value in measures)
    version, title = read_version(passage.marks), passage.title.partition("\n")[0]
    if not version.label and times:
        version = read_version([text])
    subject = frozenset(token.key for token in tokens(_without_version(passage.title)) if token.content)
    source = (text, index, passage.number, title, version)
    return VersionStatement(
        *source, words, things, frozenset(names), tuple(measures), tuple(times), subject, shown
    )


def _without_version(title: str) -> str:
    """Remove version number, stage and date from a title."""
    for value in reversed([value for value in find_values(title) if value.dimension == "date"]):
        title = title[: value.start] + title[value.end :]
    return _STAGE.sub(" ", _NUMBERED.sub(" ", title))


def disagree(one: VersionStatement, other: VersionStatement, question: Question) -> bool:
    """Tell whether two sentences say the same of the same thing but for their values."""
    known = question.keys | one.subject | other.subject
    alike = _alike(one.words, other.words, question) or _alike(one.things, other.things, question)
    if (one.names ^ other.names) - known or not alike:
        return False
    if one.subject and other.subject and _jaccard(one.subject, other.subject) < _ALIKE:
        return False
    if question.spans and one.times and other.times and not _common(one.times, other.times):
        return False
    if _neighbours(one, one.words - other.words) & _neighbours(other, other.words - one.words):
        return False  # "of students" against "of adults": another word between the same neighbours
    kinds = [sorted(value.dimension for value in statement.values) for statement in (one, other)]
    same = _common(one.values, other.values)
    return kinds[0] == kinds[1] and same == len(one.values) - 1


def _neighbours(statement: VersionStatement, words: frozenset[str]) -> set[tuple[str, str]]:
    """Return the words before and after each of some words of a sentence; all values count as the same word."""
    row = tokens(statement.text)
    keys = ["", *("#" if token.value else token.key for token in row), ""]
    return {(keys[n], keys[n + 2]) for n, token in enumerate(row) if token.content and keys[n + 1] in words}


def _common(some: Sequence[Value], others: Sequence[Value]) -> int:
    """Count the values of one text that the other states too."""
    return sum(any(_says(one, other) for other in others) for one in some)


def _alike(one: frozenset[str], other: frozenset[str], question: Question) -> bool:
    """Tell whether two sentences have mostly the same words, or one has all words of the other."""
    shared = one & other
    if _jaccard(one, other) >= _ALIKE:
        return True
    asked = weight_of(question, question.keys & set(terms(" ".join(shared))))
    return len(shared) == min(len(one), len(other)) and (len(shared) >= _MIN_SHARED or asked >= _RELEVANT)


def _says(one: Value, other: Value) -> bool:
    return same_value(one, other) or same_value(other, one)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard index of two sets of words."""
    return len(one & other) / (len(one | other) or 1)
