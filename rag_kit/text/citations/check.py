"""An answer taken apart into statements with their citations, and whether each citation holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.text.analysis import content_words
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.citations.match import judge
from rag_kit.text.citations.source import PassageSource
from rag_kit.text.language import HAN
from rag_kit.text.sentences import AFTER_DAY, sentences

CitationStatus = Literal["supported", "unsupported", "undecided", "missing_passage"]
ReportStatus = Literal["grounded", "flagged", "undecided", "uncited", "declined"]

_TABLE = Path(__file__).with_name("reasons.txt").read_text(encoding="utf-8")
_REASONS = [line.split("\t") for line in _TABLE.splitlines()]  # name, English, Chinese
MAX_ANSWER = 100_000
"""Characters of an answer that are looked at."""

MAX_STATEMENTS = 500
_MAX_RANGE = 20  # numbers of a mark such as [1-20]; in a longer one only the two ends count
_NUMBERS = r"\d{1,6}(?:\s{0,4}(?:[,，、;；–—~-]|and|和)\s{0,4}\d{1,6}){0,40}"
_OPEN = r"[\[［【]\s{0,4}(?:(?i:passage|source|段落|来源|文档|资料)\s?)?"
_MARK = re.compile(rf"{_OPEN}(?P<numbers>{_NUMBERS})\s{{0,4}}[\]］】]")
_FIRST_MARKS = re.compile(rf"(?:{_OPEN}{_NUMBERS}\s{{0,4}}[\]］】]\s?)+")
_BLANK_AND_MARK = re.compile(rf"(?P<blank>\s?){_MARK.pattern}")
_PLAIN = re.compile(r"\[(\d{1,6})\]")
# begins where a run of blanks begins, so that a long run is looked at once and not from each of its blanks
_SPACE_BEFORE = re.compile(r"(?<![ \t])[ \t]++(?=\[\d{1,6}\])")
_MARKS = re.compile(r"((?:\[\d{1,6}\](?:\s{0,3}(?=\[\d{1,6}\]))?)+)")
# a word and the marks behind it; none where a sentence ended, as before a footnote
_WORD_AND_MARKS = re.compile(
    r"[^\s\]】。！？]{1,20}(?<![.!?…])(?<![.!?…][\"”’)])"
    rf"(?P<marks>(?:\s?{_OPEN}{_NUMBERS}\s{{0,4}}[\]］】])+)"
)
# signs of no language stand for the brackets of a text while it is cut into sentences and at its marks
_HIDDEN = str.maketrans("[］【]［】", "\ue000\ue001\ue002\ue003\ue004\ue005")
_UNHIDDEN = {hidden: bracket for bracket, hidden in _HIDDEN.items()}
_RANGE = re.compile(r"(\d{1,6})(?:\s{0,4}[–—~-]\s{0,4}(\d{1,6}))?")
_NO_STATEMENT = re.compile(
    r"^\s*(?:#{1,6}\s.*|[-*•·]?\s*(?:\*\*)?[^.!?。！？]{0,120}[:：](?:\*\*)?\s*|[\W_]*"
    r"|\*\*[^.!?。！？*\d]{1,60}\*\*|(?:yes|no|sure|ja|nein|是的?|对|不是?|否)[.!。！])$",
    re.DOTALL | re.IGNORECASE,
)
# in front of what a passage says
_INTRODUCED = re.compile(
    r"^\W*(?:(?:according to|based on) (?:\w+ ){0,2}(?:passages?|documents?|context|sources?|texts?),"
    r"|(?:the )?(?:passages?|documents?|sources?|texts?) (?:says?|states?|mentions?) that"
    r"|laut (?:\w+ )?(?:Dokument|Quelle|Unterlage|Text)\w*,?)\s",
    re.IGNORECASE,
)
# the header of a table, before the line below it; the fences of code; a list of sources at the end
_NOT_SAID = re.compile(
    r"^[ \t]*(?:\|[^\n\[【［]*\|[ \t]*\n(?=[ \t]*\|[ \t:|-]*--)|(?:```|~~~).*$"
    r"|(?<=\n)[#* ]{0,7}(?:sources|references|quellen|来源|参考(?:资料|文献))[:：* ]{0,4}\n"
    r"(?:[ \t]*+(?:[-*•][ \t]*+)?[\[［【].+(?:\n|\Z)|\n)++\Z)",
    re.IGNORECASE | re.MULTILINE,
)
# of an item of a list; "1. Mai" is a day
_LIST_NUMBER = re.compile(
    rf"(?m)(^[ \t>]*|(?<=[;；])[ \t]*)(\*\*)?[(（]?\d{{1,2}}(?:[.)）、．](?=[{HAN}*“《])"
    rf"|[.)）]\s+(?!{AFTER_DAY.pattern})(?=[\w*“\"《(]))"
)
# "Step 2:" or 第二步：, which a model writes before what a passage says; things that are numbered have other names
_STEP_NUMBER = r"[ \t\xa0]?(?:\d{1,2}|one|two|three|four|five|[一二三四五六七八九十]{1,2})"
_STEP_WORD = "step|point|reason|tip|example|answer|schritt|punkt|grund|步骤|要点|方法|原因|建议|示例"
_STEP = re.compile(
    r"(?im)(?P<before>^[ \t>]*+(?:[-*•·][ \t])?|(?<=[.!?;。！？；\]】])[ \t]*+)(?P<bold>\*\*)?"
    rf"(?:(?:{_STEP_WORD}){_STEP_NUMBER}"
    rf"|第{_STEP_NUMBER}[步点])(?:[:：.)、，](?!\d)|[ \t][–—-](?=\s))(?P<end>\*\*)?[ \t]*+(?=\S)"
)
# a passage that numbers what it says, in whatever way: there a number may be the wrong one
_NUMBERED = re.compile(
    rf"(?im)(?:{_STEP_WORD})[se]?{_STEP_NUMBER}|第{_STEP_NUMBER}[步点，、]|首先|其次"
    rf"|\b(?:first|second)(?:ly)?(?:,|\s(?:{_STEP_WORD}))"
    r"|(?:^|[.;:。；：(（|])[ \t>*]*(?:\d{1,2}|[一二三四五六七八九十]{1,2})[ \t]*[.)）、．|]"
)


@dataclass(frozen=True)
class Citation:
    """One statement of an answer with one of the passages that it cites.

    The quote is the span of the passage that supports the statement best, ``passage[quote_start:quote_end]``; it is
    None where there is no passage of that number.
    """

    number: int  # in the brackets; passages count from 1
    statement: str  # without its citation marks
    quote: str | None
    quote_start: int | None  # in characters
    quote_end: int | None
    status: CitationStatus  # "undecided": words do not tell
    score: float  # share of the statement that the passage holds, in [0, 1]
    reason: str  # why, in one short sentence


@dataclass(frozen=True)
class CitationReport:
    """All citations of an answer, in its order.

    The status is ``"declined"`` (the answer says that it is not in the documents), ``"flagged"`` (a citation does not
    hold), ``"undecided"`` (a citation could not be checked, and all others hold), ``"uncited"`` (all that is cited
    holds, but a statement has no citation) or ``"grounded"``.
    """

    status: ReportStatus
    citations: tuple[Citation, ...] = ()
    uncited: tuple[str, ...] = ()  # the statements without a citation


def check_citations(
    answer: str,
    passages: Sequence[str | Any],
    *,
    language: str | None = None,
    judged: Mapping[str, CitationStatus] | None = None,
) -> CitationReport:
    """Check every citation ``[n]`` of an answer against the passage that it names.

    A statement is supported where the passage says it: word for word, or with two thirds of its words and all of its
    values and names, the same negations and no opposites, each value beside the words that it is beside in the
    passage; a sentence that only asks whether something is so tells nothing. Values are equal in any form and unit; a
    number of a table has the unit and name of its column and the name of its row; title and headings of a document
    count as said. It is lexical: a statement in quite other words, in another language than its passage, or with a
    wording of its own in a sentence of the passage, is undecided, and a false one may pass (`docs/benchmarks.md` has
    the figures). A mark that a passage has after the same word, as in ``a[3]``, is a part of the statement if that has
    another mark. MAX_ANSWER characters and MAX_STATEMENTS statements are checked, and a longer answer is flagged.

    Args:
        answer: The answer, with marks such as ``[1]``, ``[1, 2]`` or ``【1】``.
        passages: The texts of the passages, or LangChain documents; number n is ``passages[n - 1]``.
        judged: Statement -> what a language model says of it; it decides in place of the words.
        language: Of the answer, ``"en"`` or ``"zh"``: the language that reasons are given in; None: English.

    Raises:
        InvalidInputError: The answer is not a string, or the passages are not a list of strings or documents.

    Example:
        >>> report = check_citations("The Rhine is 1,230 km long [1].", ["Rivers: The Rhine is 1,230 km long."])
        >>> report.status, report.citations[0].status
        ('grounded', 'supported')
        >>> check_citations("The Rhine is 1,320 km long [1].", ["The Rhine is 1,230 km long."]).citations[0].reason
        'A number differs from the passage.'
    """
    if not isinstance(answer, str):
        raise InvalidInputError(f"answer is a {type(answer).__name__}; it must be a string; give its text.")
    sources = _read_passages(passages)
    if is_declined(answer):
        return CitationReport("declined")
    reasons = {key: chinese if language == "zh" else english for key, english, chinese in _REASONS}
    claims = statements(answer, [source.original for source in sources])
    checked = (_check_statement(claim, sources, reasons, judged or {}) for claim in claims)
    citations = list(chain.from_iterable(checked))
    # what the documents lack, nothing in them says
    uncited = [claim.text for claim in claims if not claim.numbers and not is_declined(claim.text)]
    statuses = {citation.status for citation in citations}
    status: ReportStatus = "grounded"
    if statuses & {"unsupported", "missing_passage"} or len(answer) > MAX_ANSWER:
        status = "flagged"
    elif "undecided" in statuses:
        status = "undecided"
    elif uncited or not citations or len(claims) >= MAX_STATEMENTS:
        status = "uncited"
    return CitationReport(status, tuple(citations), tuple(uncited))


def _read_passages(passages: Any) -> list[PassageSource]:
    """Read passages, which may be strings or documents with a title and headings; refuse anything else."""
    is_list = isinstance(passages, Sequence) and not isinstance(passages, (str, bytes))
    sources = []
    for passage in passages if is_list else [None]:  # None is refused
        text = getattr(passage, "page_content", passage)
        if not isinstance(text, str):
            raise InvalidInputError(
                "passages must be a list of strings or documents, in the order in which the answer numbers them from 1."
            )
        metadata = getattr(passage, "metadata", None) or {}
        context = [metadata.get(name) for name in ("title", "heading")]
        sources.append(PassageSource(text, "\n".join(line for line in context if isinstance(line, str))))
    return sources


def _check_statement(
    statement: Statement,
    sources: Sequence[PassageSource],
    reasons: Mapping[str, str],
    judged: Mapping[str, CitationStatus],
) -> Iterator[Citation]:
    """Check a statement against each passage that it cites: one citation a number, in order."""
    cited = {number: sources[number - 1] for number in statement.numbers if 1 <= number <= len(sources)}
    text = _INTRODUCED.sub("", statement.text)
    verdicts = dict(zip(cited, judge(text, list(cited.values())), strict=True))
    label = judged.get(statement.text)
    for number in statement.numbers:
        if number not in verdicts:
            missing = reasons["missing_passage"]
            yield Citation(number, statement.text, None, None, None, "missing_passage", 0.0, missing)
            continue
        score, reason, *span = verdicts[number]
        start, end = (cited[number].offsets[offset] for offset in span)
        status: CitationStatus = label or verdicts[number].status
        quote, score = cited[number].original[start:end], round(score, 3)
        yield Citation(number, statement.text, quote, start, end, status, score, reasons[label or reason])


class Statement(NamedTuple):
    """A statement of an answer, and the numbers of the passages that it cites, each once, in order."""

    text: str
    numbers: tuple[int, ...]


def statements(answer: str, passages: Sequence[str] = ()) -> list[Statement]:
    """Cut the first MAX_ANSWER characters of an answer into at most MAX_STATEMENTS statements with their citations.

    Marks may be ``[1]``, ``[1, 2]``, ``[1-3]``, ``[1][2]``, ``【1】``, ``［1］`` or ``[source 1]``, before or after the
    full stop, or on the next line. A sentence with several marks is cut at them where each part says something.
    Headings, also of a table, lines that only introduce a list, and a bare yes or no are not statements; the number of
    an item is no part of one, nor is "Step 2:" where its passage numbers nothing. A mark that a passage has after the
    same word is text ("a[3]"), if its sentence has another mark.

    Example:
        >>> statements("A cat sleeps [1]. Dogs bark loudly 【2、3】。")
        [Statement(text='A cat sleeps.', numbers=(1,)), Statement(text='Dogs bark loudly。', numbers=(2, 3))]
    """
    answer = _NOT_SAID.sub("", answer[:MAX_ANSWER])
    answer = _LIST_NUMBER.sub(lambda item: f"{item[1]}{item[2] or '- '}", answer)
    answer = _without_steps(answer, passages)
    text_marks = _passage_marks(answer, passages)  # are hidden while the answer is cut at the others

    def plain_or_hidden(mark: re.Match[str]) -> str:
        return mark[0].translate(_HIDDEN) if mark.start() in text_marks else _plain_mark(mark)

    claims: list[Statement] = []
    for sentence in sentences(_SPACE_BEFORE.sub("", _MARK.sub(plain_or_hidden, answer))):
        text = sentence.text
        if not _PLAIN.search(text):  # hidden marks are the only ones: they cite
            text = _MARK.sub(_plain_mark, text.translate(_UNHIDDEN))
        pieces = [piece.translate(_UNHIDDEN) for piece in _MARKS.split(text)]
        texts, marks = pieces[::2], pieces[1::2]  # split() gives a text, a mark, a text, ...
        # marks behind the full stop, or on the next line, are of the statement before
        if marks and not texts[0] and claims and not claims[-1].numbers:
            claims[-1] = claims[-1]._replace(numbers=_cited_numbers(marks[0]))
            del texts[0], marks[0]
        parts = _split_at_marks(texts, marks)
        claims.extend(part for part in parts if part.numbers or not _NO_STATEMENT.match(part.text))
        if len(claims) > MAX_STATEMENTS:
            break
    return claims[:MAX_STATEMENTS]


def _without_steps(answer: str, passages: Sequence[str]) -> str:
    """Remove labels such as "Step 2:" from an answer, except before a citation of a passage that numbers things."""
    numbering = {number for number, text in enumerate(passages, 1) if _NUMBERED.search(text)}

    def remove(step: re.Match[str]) -> str:
        marks = _FIRST_MARKS.search(answer, step.end(), step.end() + 1_000)
        cited = _cited_numbers(_MARK.sub(_plain_mark, marks[0])) if marks else numbering
        if not numbering.isdisjoint(cited):
            return step[0]
        begins_line = not step["before"] and (not step.start() or answer[step.start() - 1] == "\n")
        if step["bold"] and not step["end"]:  # what is bold goes on behind the label
            return step["before"] + step["bold"]
        return step["before"] + ("- " if begins_line else "")  # what begins a line stays an item

    return _STEP.sub(remove, answer)


def renumber(answer: str, numbers: Mapping[int, int], passages: Sequence[str] = ()) -> str:
    """Replace the numbers in the citation marks of an answer; a number that is not a key of ``numbers`` is removed.

    Example:
        >>> renumber("Tea is hot [1, 2]. So is coffee【3】.", {1: 4, 3: 1})
        'Tea is hot [4]. So is coffee[1].'
        >>> renumber("Tea is hot [1].", {})
        'Tea is hot.'
    """
    text_marks = _passage_marks(answer, passages)

    def new_marks(match: re.Match[str]) -> str:
        """Return a mark, with the blank before it, with new numbers; "" if no number is left."""
        if match.end("blank") in text_marks:  # it is no citation
            return match[0]
        cited = _cited_numbers(_plain_mark(match))
        marks = "".join(f"[{numbers[number]}]" for number in cited if number in numbers)
        return f"{match['blank']}{marks}" if marks else ""

    return _BLANK_AND_MARK.sub(new_marks, answer)


def _passage_marks(answer: str, passages: Sequence[str]) -> set[int]:
    """Return the starts of those marks in an answer that a passage has after the same word: text, not citations."""
    in_passages = {word_and_mark for text in passages for _, word_and_mark in _marks_after_words(text)}
    if not in_passages:
        return set()
    return {start for start, word_and_mark in _marks_after_words(answer) if word_and_mark in in_passages}


def _marks_after_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the start of each mark behind a word, with the text from the word to it: "a[3]" and "a[3][4]"."""
    text = text.replace("`", " ")  # of code
    for word in _WORD_AND_MARKS.finditer(text):
        for mark in _MARK.finditer(text, word.start("marks"), word.end()):
            yield mark.start(), " ".join(text[word.start() : mark.end()].split())


def _plain_mark(match: re.Match[str]) -> str:
    """Write a mark of any form, such as ``【1-3, 5】``, as ``[1][2][3][5]``."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(match["numbers"]):
        start, end = int(first), int(last or first)
        numbers += range(start, end + 1) if start <= end < start + _MAX_RANGE else (start, end)
    return "".join(f"[{number}]" for number in dict.fromkeys(numbers))


def _cited_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of plain marks, each once: ``"[2][1][2]"`` gives 2 and 1."""
    return tuple(dict.fromkeys(int(number) for number in _PLAIN.findall(text)))


def _split_at_marks(texts: list[str], marks: list[str]) -> list[Statement]:
    """Cut a sentence at its marks if each part has two content words or more; else make it one statement.

    `texts` has the text before each mark, and as its last element the text behind the last mark.
    """
    pairs = zip(texts, marks, strict=False)
    parts = [Statement(text.strip(" \n,，;；、"), _cited_numbers(mark)) for text, mark in pairs]
    stand_alone = all(len(content_words(part.text)) > 1 for part in parts)
    if len(parts) > 1 and stand_alone and not content_words(texts[-1]):
        return parts
    whole = re.sub(r"\s+([.,;!?])", r"\1", "".join(texts)).strip()
    return [Statement(whole, _cited_numbers("".join(marks)))] if whole or parts else []
