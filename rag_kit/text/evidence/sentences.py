"""The sentences of the passages as evidence: how well each may answer the question, and which ones do."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from rag_kit.documents.identity import version_text
from rag_kit.text.evidence.questions import (
    HEADING,
    HOW,
    REFERENCE,
    Question,
    clause_begun,
    clauses_named,
    offers,
    terms,
)
from rag_kit.text.evidence.times import TimeFit, TimeSpan, fit_in_time, time_spans
from rag_kit.text.language import detect_language
from rag_kit.text.sentences import Sentence, sentences
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

_TO = re.compile(r"\s?(?:[-–—~～至到]|to|bis)\s?")  # between the ends of a range
MAX_SENTENCES = 400  # looked at together; what follows is left out, so that time is bounded
_MAX_TITLE = 500
_HEADING = re.compile(r"#{1,6}\s")
_CLAUSE_LEVEL = 7  # below all other headings
_FIRST_HEADING = re.compile(r"[^\n]{0,99}[^\n.!?。！？…;；:：]")  # a short first line without a full stop
_DELIMITER = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_NOT_WORD = re.compile(r"\W+")
_LINK_TARGET = re.compile(r"(?<=\])\([^()\s]{1,300}\)")
_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*(\S*)[^\n]*$", re.MULTILINE)
# a picture or link alone, a comment, a line of code without a fence around it
_NO_SENTENCE = re.compile(
    r"!?\[[^\]]*\]\([^)]*\)[.。]?$|<[^>]+>$|[$#] ?->|>>> |(?:from [\w.]+ )?import \w+$|def \w+\(|print\("
    r"|(?:\[?\w+\]? = )?[\w.]+\(.*[)(,]$"
)


@dataclass(frozen=True)
class PassageText:
    """A passage in which evidence is counted: its number, text, title and innermost heading.

    ``marks`` are the texts that may say its version: of the metadata, the title and the name of its file. ``name`` is
    what it is called where it has no heading: its title, else its file.
    """

    number: int
    text: str
    title: str = ""
    heading: str = ""
    marks: tuple[str, ...] = ()
    name: str = ""


def passage_text(number: int, text: str, metadata: Mapping[str, Any]) -> PassageText:
    """Make a `PassageText` of a passage's metadata; its title has the headings on a second line."""
    values = (metadata.get(name) for name in ("title", "heading"))
    title, headings = (value[:_MAX_TITLE] if isinstance(value, str) else "" for value in values)
    file = str(metadata.get("file") or metadata.get("source") or "")[-_MAX_TITLE:]
    marks = version_text(metadata), title, file.rpartition("/")[2].replace("_", " ")
    title_and_headings = f"{title}\n{headings}".strip()
    return PassageText(number, text, title_and_headings, headings.rpartition(" > ")[2], marks, title or file)


def passage_texts(documents: Iterable[Any]) -> list[PassageText]:
    """Make a `PassageText` of each document, numbered from 1."""
    return [passage_text(n, doc.page_content, doc.metadata) for n, doc in enumerate(documents, start=1)]


class Features(NamedTuple):
    """Measures that speak for a sentence, each from 0 to 1; shares are of the weight of the question's terms."""

    cover: float  # share in the sentence
    rest: float  # the same, without the terms that the passage's title holds anyway
    near: float  # share in the sentence, its two neighbours and the title
    title: float  # share in the title and headings of its passage
    opens: float  # the same, of the first two sentences of the passage
    rank: float  # 1 in the first passage, 1/2 in the second, 1/3 ...
    kind: float  # offers something of the kind that is asked for, not named in the question
    edges: float  # fit in time (`TimeFit`), as are the next two
    overlap: float
    recent: float
    asks: float  # is itself a question


# fitted by a softmax over the sentences of each question (docs/decisions/0034, 0039)
_WEIGHTS = Features(2.6, 2.2, 4.1, 2.2, 1.6, 1.6, 1.3, 1.3, 0.9, 1.2, -0.5)
_HIGHEST = sum(weight for weight in _WEIGHTS if weight > 0)
MIN_NEAR = 0.1
"""Share of the question's weight that must stand in a sentence, its neighbours and the title, to be worth anything."""
# how far behind the first sentence a second one may be, in its passage and in another one
_MAX_BEHIND, _MAX_BEHIND_ELSEWHERE = 5.0, 3.5
_HEADED = 2.2  # gained under a heading that names nothing but what is asked, times its share of the question
# when sentences are chosen: gained by code where it may be asked for, lost by a passage in another language than the
# question if others are in its language
_CODE, _FOREIGN = 0.6, 1.5
_MAX_OF_PASSAGE = 2  # most sentences of one passage that are chosen
_OPENING = 2  # sentences that open a passage


@dataclass(frozen=True)
class _ReadSentence:
    text: str  # verbatim
    passage_index: int  # of its passage, from 0
    matched: frozenset[str]  # terms of the question in it
    title: frozenset[str]  # and in the titles and headings above it
    header: str  # the header of the table that it is a row of, or ""


@dataclass(frozen=True)
class SentenceCandidate(_ReadSentence):
    """A sentence that may become a part of the answer."""

    number: int  # of its passage
    order: int  # position among all sentences
    near: frozenset[str]  # terms of the question in it, its neighbours and the title of its passage
    features: Features
    score: float  # the features, weighed: the logarithm of a share

    def worth(self, min_near: float = MIN_NEAR) -> float:
        """Return the score as a share of the highest possible one; 0 for a sentence with too little of the question."""
        features = self.features
        on_topic = features.near >= max(min_near, 1e-9)  # with a limit of 0, too, it must have some word
        signs = (features.cover, features.kind, features.edges, features.overlap)
        return max(0.0, self.score / _HIGHEST) if on_topic and any(signs) else 0.0


def collect(question: Question, passages: Sequence[PassageText]) -> list[SentenceCandidate]:
    """Score every sentence of the passages for the question, in reading order."""
    keys = question.keys
    read = _read_sentences(question, passages)
    weights = _rarity_weights(question, read)
    time_fits = _time_fits(question, passages, read)
    headings = [frozenset(terms(passage.heading)) for passage in passages]
    candidates = []
    for order, (sentence, time_fit) in enumerate(zip(read, time_fits, strict=True)):
        title, index = sentence.title, sentence.passage_index
        # a question does not count for the sentence before it, being about later ones, nor a row for the next
        after = [other for other in read[order + 1 : order + 2] if not is_question(other.text)]
        beside = [
            other for other in (*read[max(order - 1, 0) : order], *after) if other.passage_index == index
        ]
        matched_beside = [other.matched for other in beside if not (other.header and sentence.header)]
        near = sentence.matched.union(title, keys & set(terms(sentence.header)), *matched_beside)
        opens = order < _OPENING or read[order - _OPENING].passage_index != index
        features = Features(
            cover=_share(weights, sentence.matched),
            rest=_share(weights, sentence.matched - title) / (_share(weights, keys - title) or 1.0),
            near=_share(weights, near),
            title=_share(weights, title),
            opens=_share(weights, title) if opens else 0.0,
            rank=1 / (1 + index),
            kind=float(offers(question.kind, sentence.text, question.text)),
            edges=time_fit.edges,
            overlap=time_fit.overlap,
            recent=time_fit.recent,
            asks=float(is_question(sentence.text)),
        )
        score = sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
        if headings[index] <= keys:
            score += _HEADED * _share(weights, headings[index])
        number = passages[index].number
        candidates.append(
            SentenceCandidate(
                **vars(sentence), number=number, order=order, near=near, features=features, score=score
            )
        )
    return candidates


def _time_fits(
    question: Question, passages: Sequence[PassageText], read: Sequence[_ReadSentence]
) -> list[TimeFit]:
    """Measure how the times of each sentence fit the question's; they all fit alike if the question names none."""
    if not question.spans:
        return [TimeFit()] * len(read)
    usual_times = [time_spans("\n".join((passage.title, *passage.marks))) for passage in passages]
    last_times: dict[int, tuple[TimeSpan, ...]] = {}  # by passage
    fits = []
    for sentence in read:
        index = sentence.passage_index
        spans = time_spans(sentence.text)
        last_times[index] = spans[-1:] or last_times.get(index, ())
        # a row has the times of its header, too; a sentence without any those of its document's version
        if named := spans + time_spans(sentence.header) or usual_times[index]:
            fits.append(fit_in_time(question.spans, named))
        else:  # the last ones before it, at half value
            fits.append(TimeFit(*(value / 2 for value in fit_in_time(question.spans, last_times[index]))))
    return fits


def _rarity_weights(question: Question, read: Sequence[_ReadSentence]) -> dict[str, float]:
    """Weigh each term by its salience times its rarity among the sentences; the weights sum to 1."""
    count = Counter(key for sentence in read for key in sentence.matched)
    # (N + 1) / (n + 0.5) as in BM25's idf; log1p leaves weight to a term that is in every sentence
    rarity = {term.key: math.log1p((len(read) + 1) / (count[term.key] + 0.5)) for term in question.terms}
    weights = {term.key: term.salience * rarity[term.key] for term in question.terms}
    total = sum(weights.values()) or 1.0
    return {key: weight / total for key, weight in weights.items()}


def _share(weights: Mapping[str, float], keys: Iterable[str]) -> float:
    """Add up the weights of some terms; their order, which sets do not keep, changes no bit of the sum."""
    return math.fsum(weights[key] for key in keys)


def choose(question: Question, scored: list[SentenceCandidate], count: int = 2) -> list[SentenceCandidate]:
    """Choose the best `count` distinct sentences, at most two of a passage, best first; ties keep reading order.

    After the first, a sentence gains by the terms of the question that it adds to those chosen.
    """
    code = _CODE if HOW.search(question.text) else 0.0
    alike = {one.passage_index for one in scored if detect_language(one.text) == question.language}
    scores = {one.order: one.score + code * ("`" in one.text) for one in scored}
    if alike:
        scores |= {one.order: one.score - _FOREIGN for one in scored if one.passage_index not in alike}
    distinct: dict[str, SentenceCandidate] = {}
    for candidate in sorted(scored, key=lambda candidate: -scores[candidate.order]):
        distinct.setdefault(_NOT_WORD.sub("", candidate.text.casefold()), candidate)
    left = list(distinct.values())
    chosen: list[SentenceCandidate] = []
    while left and len(chosen) < count:
        matched = frozenset[str]().union(*(candidate.matched for candidate in chosen))
        gains = [scores[candidate.order] for candidate in left]
        if chosen:
            gains = [scores[one.order] + weight_of(question, one.matched - matched) for one in left]
        chosen.append(left.pop(gains.index(max(gains))))
        counts = Counter(candidate.passage_index for candidate in chosen)
        left = [candidate for candidate in left if counts[candidate.passage_index] < _MAX_OF_PASSAGE]
    return chosen


def drop_distraction(picked: Sequence[SentenceCandidate]) -> list[SentenceCandidate]:
    """Drop sentences that score far below the first, are in another language, or share nothing with the question.

    A score is a logarithm: with five less, a sentence holds the answer 150 times less often.
    """

    def may_add(candidate: SentenceCandidate) -> bool:
        best = picked[0]
        limit = _MAX_BEHIND if candidate.passage_index == best.passage_index else _MAX_BEHIND_ELSEWHERE
        is_near = best.score - candidate.score < limit
        same_language = detect_language(candidate.text) == detect_language(best.text)
        return is_near and same_language and bool(candidate.matched or candidate.features.kind)

    kept = [*picked[:1], *filter(may_add, picked[1:])]
    return [row for row in kept if not any(_is_better_row(other, row) for other in kept)]


def _is_better_row(other: SentenceCandidate, row: SentenceCandidate) -> bool:
    """Tell whether another row of the same table fits the question better: it names more of it, or its time."""
    if not row.header or (row.passage_index, row.header) != (other.passage_index, other.header):
        return False
    overlap, other_overlap = row.features.overlap, other.features.overlap
    is_alike = row.matched == other.matched and overlap == other_overlap
    return not is_alike and row.matched.issubset(other.matched) and overlap <= other_overlap


def weight_of(question: Question, keys: Iterable[str]) -> float:
    """Return the share of the question's weight that some of its terms have."""
    return _share(question.weights, keys)


def is_question(text: str) -> bool:
    """Tell whether a sentence is a question."""
    return text.rstrip("\"'”’」』)）").endswith(("?", "？"))


def _read_sentences(question: Question, passages: Sequence[PassageText]) -> list[_ReadSentence]:
    """Split passages into sentences; if the question names a clause, only the sentences of that clause are returned."""
    in_clause: list[_ReadSentence] = []
    stand_ins: list[_ReadSentence] = []  # the clause's heading, and sentences outside of clauses that name it
    read = chain.from_iterable(_read_passage(question, n, passage) for n, passage in enumerate(passages))
    for sentence, is_in_clause in islice(read, MAX_SENTENCES):
        (in_clause if is_in_clause else stand_ins).append(sentence)
    # a heading in the middle of a passage is an answer only where there is nothing else
    without_headings = [sentence for sentence in in_clause if not _HEADING.match(sentence.text)]
    return without_headings or in_clause or stand_ins


def _read_passage(question: Question, n: int, passage: PassageText) -> Iterator[tuple[_ReadSentence, bool]]:
    """Yield the sentences of passage `n` that are in a clause asked for (True), or may stand in for one (False).

    If the question names no clause, all sentences but the headings are yielded with True.
    """
    asked = question.clauses
    # the words for a clause that is asked for, as it may be written otherwise: 第9条, 第九条
    named = question.keys & set(terms(" ".join(match[0] for match in REFERENCE.finditer(question.text))))
    # the terms that each amount with a unit is written in
    amounts = {
        value: question.keys & set(terms(question.text[value.start : value.end]))
        for value in find_values(question.text if "|" in passage.text else "")
        if value.unit
    }
    headings = {0: passage.title}  # by level
    clause = clause_begun(passage.heading)  # the one that the next sentence is in
    for text, table_header, level in _sentences_in_context(passage):
        begun = clause_begun(text)
        if begun and (not clause or begun.closes(clause) or begun.is_among(asked)):
            clause = begun
        if level:
            headings = {upper: line for upper, line in headings.items() if upper < level} | {level: text}
            is_in_clause, stands_in = False, bool(begun and begun.is_among(asked))
        else:
            is_in_clause = not asked or bool(clause and clause.is_among(asked))
            stands_in = not clause and not set(asked).isdisjoint(clauses_named(text))
        if is_in_clause or stands_in:
            title = named | (question.keys & set(terms("\n".join(headings.values()))))
            matched = question.keys & set(terms(_LINK_TARGET.sub("", text)))
            if table_header and amounts:
                matched = _match_amounts(amounts, text, matched)
            yield _ReadSentence(text, n, matched, title, table_header), is_in_clause


def _match_amounts(amounts: dict[Value, frozenset[str]], row: str, matched: frozenset[str]) -> frozenset[str]:
    """Count an amount of the question as in a row that has it, or a range around it; not where another unit has it."""
    in_row = find_values(row)
    for asked, keys in amounts.items():
        values = [value for value in in_row if value.dimension == asked.dimension]
        lows, highs = ([value.base for value in values if value.bound == bound] for bound in ("min", "max"))
        ranges = [(max(lows, default=-math.inf), min(highs, default=math.inf))] if lows or highs else []
        for low, high in pairwise(values):
            if _TO.fullmatch(row, low.end, high.start):
                ranges.append((low.base, high.base))
        if asked.bound and not ranges:  # amounts over 5 EUR are asked for
            continue
        ranges = ranges or [(value.base, value.base) for value in values]
        without_unit = [] if values else [value.amount for value in in_row if not value.dimension]
        has_it = any(low <= asked.base <= high for low, high in ranges) or asked.amount in without_unit
        matched = matched | keys if has_it else matched - keys
    return matched


def _sentences_in_context(passage: PassageText) -> Iterator[tuple[str, str, int]]:
    """Yield each sentence of a passage outside of code, the header of its table, and its level as a heading, or 0."""
    titles = {line.strip() for line in passage.title.splitlines()}
    first_line, _, below = passage.text.partition("\n")
    repeats_title = first_line.strip() in titles and bool(below.strip())
    body = _without_code(below if repeats_title else passage.text)
    spans = [span for span in sentences(body) if not _NO_SENTENCE.match(span.text)]
    for span, table_header in _with_table_headers(spans):
        text = span.text
        is_first_line = span is spans[0] and body[span.end :].lstrip(" ").startswith("\n")
        if len(spans) == 1:  # it is no heading, since there is nothing below it
            level = 0
        elif text in titles or (is_first_line and _FIRST_HEADING.fullmatch(text)):
            level = 1
        elif HEADING.fullmatch(text.strip("*_")):
            level = _CLAUSE_LEVEL
        else:
            level = len(text) - len(text.lstrip("#"))
        yield text, table_header, level
        if level == 1 and "：" in text and text[0] != "#" and text not in titles:  # 主持：王芳
            yield text, table_header, 0


def _with_table_headers(spans: Sequence[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Yield sentences with the header of the table that each is a row of, or ""; headers and rules are left out."""
    header = ""
    texts = ["", *(span.text for span in spans), ""]
    for before, span, after in zip(texts, spans, texts[2:], strict=False):
        if not span.text.startswith("|"):
            header = ""
        elif _DELIMITER.fullmatch(span.text):
            continue
        elif _DELIMITER.fullmatch(after):
            header = span.text
            continue
        elif header and _DELIMITER.fullmatch(before):
            cells = [[cell.strip() for cell in row.strip("| ").split("|")] for row in (header, span.text)]
            # the header's second line: a cell over both is written twice
            if any(above == cell != "" for above, cell in zip(*cells, strict=False)):
                header = f"{header}\n{span.text}"
                continue
        yield span, header


def _without_code(text: str) -> str:
    """Remove fenced blocks of code from a text, also a block that began before the passage was cut out."""
    parts = _FENCE.split(text)
    texts_and_code, languages = parts[::2], parts[1::2]  # text and code alternate
    # a first fence that names no language may end a block: then the fences are odd, and code has no stop before it
    has_stop = texts_and_code[0].rstrip()[-1:] in tuple(".:。：")
    begins_in_code = len(languages) % 2 == 1 and not languages[0] and not has_stop
    return "\n".join(texts_and_code[1::2] if begins_in_code else texts_and_code[::2])
