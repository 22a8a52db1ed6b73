"""Passages that state different values of the same thing, as versions of a document do, and which is the newest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

from rag_kit.text.citations.tokens import content_keys, tokens
from rag_kit.text.evidence.questions import Question, analyse, terms, without_mark
from rag_kit.text.evidence.sentences import PassageText, SentenceCandidate, is_question, weight_of
from rag_kit.text.sentences import sentences
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import CALENDAR, Value, same_value

MAX_SENTENCES, MAX_STATEMENTS = 1_000, 60  # looked at, and compared
_NUMBERED = re.compile(
    r"\b(?:v|ver|version|rev|revision|release|edition)[ ._-]?(?P<number>\d{1,4}(?:\.\d{1,4}){0,3})(?![\d.])"
    r"|第(?P<han>\d{1,3})[版稿]",
    re.IGNORECASE,
)
_STAGE = re.compile(
    r"\b(?P<before>draft|proposal|preliminary|outdated|superseded|archived|obsolete)\b"
    r"|\b(?P<after>final|approved|adopted|current)\b"
    r"|(?P<han_before>草案|草稿|征求意见稿|讨论稿|试行|已废止|旧版)|(?P<han_after>定稿|终稿|正式|现行|新版)",
    re.IGNORECASE,
)
_TIMES = (*CALENDAR, "calendar days", "ordinal")
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
        times = [statement.times for statement in self.statements]
        return all(times) and not any(_count_common(one, other) for one, other in combinations(times, 2))

    @property
    def newest(self) -> VersionStatement | None:
        """The statement of the newest version, by stage, date or number; None where nothing says which that is."""
        for name in ("stage", "date", "number"):
            ranks = [getattr(statement.version, name) for statement in self.statements]
            are_known = not any(rank in (None, "", ()) for rank in ranks)
            if are_known and len(set(ranks)) > 1:
                latest = [one for one, rank in zip(self.statements, ranks, strict=True) if rank == max(ranks)]
                return latest[0] if len({statement.shown for statement in latest}) == 1 else None
        return None


def read_version(marks: Sequence[str]) -> Version:
    """Read the version of a document in the first of some texts that says one.

    Example:
        >>> read_version(["", "Travel policy v1.2 (draft)"])
        Version(stage=0, date='', number=(1, 2), label='v1.2, draft')
    """
    for text in marks:
        dates = [value for value in find_values(text) if value.dimension == "date"]
        dates = [date for date in dates if date.key[:1].isdigit()]  # with a year
        number, stage = _NUMBERED.search(text), _STAGE.search(text)
        parts = [(match.start(), match[0]) for match in (number, stage) if match]
        parts += [(date.start, text[date.start : date.end]) for date in dates]
        if parts:
            digits = (number["number"] or number["han"]) if number else ""
            return Version(
                stage=int(bool(stage["after"] or stage["han_after"])) if stage else None,
                date=max((date.key for date in dates), default=""),
                number=tuple(int(digit) for digit in digits.split(".") if digit),
                label=", ".join(dict.fromkeys(part for _, part in sorted(parts))),
            )
    return Version()


def find_disagreements(question: str, passages: Sequence[PassageText]) -> list[Disagreement]:
    """Find groups of sentences, of passages that may answer a question, that state different values of one thing.

    Two sentences of different passages disagree if they differ only in one value. Sentences that name different times,
    names or identifiers are about different things, and so are passages with different titles.

    Example:
        >>> texts = ["The hotel limit is 120 EUR per night.", "The hotel limit is now 150 EUR per night."]
        >>> passages = [PassageText(at, text, "Travel policy") for at, text in enumerate(texts, 1)]
        >>> [found] = find_disagreements("What is the hotel limit?", passages)
        >>> [statement.shown for statement in found.statements]
        ['120 EUR', '150 EUR']
    """
    analysed = analyse(question)
    statements = list(islice(_relevant_statements(analysed, passages), MAX_STATEMENTS))
    disagreements = []
    while statements:
        group = [statements.pop(0)]
        for other in statements:
            is_of_other_passage = other.passage_index not in [one.passage_index for one in group]
            if is_of_other_passage and any(disagree(one, other, analysed) for one in group):
                group.append(other)
        if len(group) > 1:
            disagreements.append(Disagreement(tuple(group)))
            statements = [one for one in statements if one not in group]
    return disagreements


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
    for disagreement in find_disagreements(question.text, passages):
        sentences_of_group = {(one.passage_index, one.text) for one in disagreement.statements}
        rivals = [one for one in settled if (one.passage_index, one.text) in sentences_of_group]
        if not rivals or disagreement.is_series:
            continue
        kept = rivals[0]
        if (newest := disagreement.newest) and not question.spans:
            wanted = (newest.passage_index, newest.text)
            kept = next((one for one in candidates if (one.passage_index, one.text) == wanted), kept)
        settled[settled.index(rivals[0])] = kept
        settled = [one for one in settled if one is kept or one not in rivals]
    return list(dict.fromkeys(settled))


def _relevant_statements(question: Question, passages: Sequence[PassageText]) -> Iterator[VersionStatement]:
    """Yield the sentences that may answer the question and state a value, in reading order.

    If only titles have words of the question, it is about the documents, and all their sentences may answer it.
    """
    texts = ((n, span.text) for n, passage in enumerate(passages) for span in sentences(passage.text))
    analysed = [(n, text, question.keys & set(terms(text))) for n, text in islice(texts, MAX_SENTENCES)]
    in_titles = [question.keys & set(terms(passage.title)) for passage in passages]
    in_texts_alone = frozenset[str]().union(*(matched for *_, matched in analysed)).difference(*in_titles)
    is_about_documents = not weight_of(question, in_texts_alone)
    for n, text, matched in analysed:
        is_relevant = weight_of(question, matched | in_titles[n]) >= _RELEVANT
        may_answer = is_relevant and (matched or is_about_documents)
        if may_answer and (statement := _read_statement(question, text, n, passages[n])):
            yield statement


def _read_statement(question: Question, text: str, n: int, passage: PassageText) -> VersionStatement | None:
    """Read a sentence of passage `n` as a statement to compare; None if it is a question or states no value.

    Times and identifiers are no values, except that times are if the question asks for one.
    """
    if is_question(text):
        return None
    body = without_mark(text)
    body_tokens = tokens(body)
    values = [token.value for token in body_tokens if token.value]
    times = [value for value in values if value.dimension in _TIMES]
    measures = [value for value in values if value.dimension not in _NO_MEASURE]
    if question.kind == "when":
        measures, times = times, []
    in_question = {value.normal for value in find_values(question.text)}
    measures = [value for value in measures if value.normal not in in_question]
    if not measures:
        return None
    version = read_version(passage.marks)
    if not version.label and times:
        version = read_version([text])
    return VersionStatement(
        text=text,
        passage_index=n,
        number=passage.number,
        title=passage.title.partition("\n")[0],
        version=version,
        words=frozenset(token.key for token in body_tokens if token.content and not token.value),
        things=frozenset(token.key for token in body_tokens if token.thing and not token.value),
        names=frozenset(token.key for token in body_tokens if token.name),
        values=tuple(measures),
        times=tuple(times),
        subject=frozenset(content_keys(tokens(_without_version(passage.title)))),
        shown=", ".join(body[value.begin : value.end].strip() for value in measures),
    )


def _without_version(title: str) -> str:
    """Remove dates, numbers of versions and words such as "draft" from a title."""
    for value in reversed(find_values(title)):  # from the end, so that offsets stay right
        if value.dimension == "date":
            title = title[: value.start] + title[value.end :]
    return _STAGE.sub(" ", _NUMBERED.sub(" ", title))


def disagree(one: VersionStatement, other: VersionStatement, question: Question) -> bool:
    """Tell whether two sentences say the same about the same thing, except for one value."""
    if (one.names ^ other.names) - question.keys - one.subject - other.subject:
        return False
    if not _alike(one.words, other.words, question) and not _alike(one.things, other.things, question):
        return False
    if one.subject and other.subject and _jaccard(one.subject, other.subject) < _ALIKE:
        return False
    if question.spans and one.times and other.times and not _count_common(one.times, other.times):
        return False
    if _neighbours(one, one.words - other.words) & _neighbours(other, other.words - one.words):
        return False  # "of students" against "of adults": another word between the same neighbours
    dimensions, other_dimensions = (sorted(value.dimension for value in each.values) for each in (one, other))
    return dimensions == other_dimensions and _count_common(one.values, other.values) == len(one.values) - 1


def _neighbours(statement: VersionStatement, words: frozenset[str]) -> set[tuple[str, str]]:
    """Return the pairs of words before and after each of the `words` in a sentence; all values are the word "#"."""
    body_tokens = tokens(without_mark(statement.text))
    keys = ["#" if token.value else token.key for token in body_tokens]
    triples = zip(["", *keys], keys, [*keys[1:], ""], body_tokens, strict=False)
    return {(before, after) for before, key, after, token in triples if token.content and key in words}


def _count_common(some: Sequence[Value], others: Sequence[Value]) -> int:
    """Count the values of one text that the other states too."""
    return sum(any(same_value(one, other) or same_value(other, one) for other in others) for one in some)


def _alike(words: frozenset[str], others: frozenset[str], question: Question) -> bool:
    """Tell whether two sentences have mostly the same words, or one has all words of the other."""
    if _jaccard(words, others) >= _ALIKE:
        return True
    shared = words & others
    if len(shared) < min(len(words), len(others)):
        return False
    asked = weight_of(question, question.keys & set(terms(" ".join(shared))))
    return len(shared) >= _MIN_SHARED or asked >= _RELEVANT  # a single word must be most of the question


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)
