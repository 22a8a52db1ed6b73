"""A question analysed: the terms that evidence is counted in, what kind of thing it asks for, times and clauses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rag_kit.text.analysis import content_words, neighbour_pairs
from rag_kit.text.evidence.times import TimeSpan, time_spans
from rag_kit.text.language import detect_language, fold, word_list
from rag_kit.text.values.numbers import read_any
from rag_kit.text.values.periods import find_periods
from rag_kit.text.values.reading import find_values, level
from rag_kit.text.values.value import CALENDAR

_HAN = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
# words that ask, and particles: not expected in an answer
_ASKING = re.compile(
    r"请问|规定了?什么|什么内容|(?:是|有|叫做?|为)?(?:什么|哪些|哪[一个位种里儿年些名]|多[少久长高大重远深宽快]|如何|怎样|怎么样?|为何|何时|何处|何地|何人|谁|几)(?:样|时候|时间|地方)?"
    r"|[的了吗呢是在和与及而于由被把所其之以]"
)
_NAMED = re.compile(
    r"(?<=[\s(])[A-Z][\w'’.-]*|\b[A-Z]{2,}\b|[!-~]*\d[!-~]*|[“\"「《『]([^”\"」》』]{1,40})[”\"」》』]"
)

_FRAME_WORDS = " ".join(sorted(word_list("frame words")))  # as in "What kind of ..."
_NAME_SALIENCE, _FRAME_SALIENCE = 1.5, 0.3


class Term(NamedTuple):
    """A term of a question."""

    key: str  # the normalised form that is looked for
    salience: float  # 1 for a plain word, more for names, numbers and identifiers, less for words that frame a question
    nominal: bool  # looks like a name, number or identifier
    date: bool  # is a part of a date


@lru_cache(maxsize=8192)
def terms(text: str) -> tuple[str, ...]:
    """Split a text into terms: content words, and pairs of Chinese characters; in order, repeats kept.

    Example:
        >>> terms("The Rhine floods 奥尔斯顿")
        ('rhine', 'flood', '奥尔', '尔斯', '斯顿')
    """
    keys: list[str] = []
    for number, part in enumerate(_HAN.split(fold(text))):
        is_chinese = number % 2 == 1  # the split alternates between other text and runs of Chinese characters
        keys += neighbour_pairs(part) if is_chinese else content_words(part)
    return tuple(keys)


@lru_cache(maxsize=256)
def question_terms(text: str) -> tuple[Term, ...]:
    """List the distinct terms of a question with their salience, in order.

    Example:
        >>> [(t.key, t.nominal) for t in question_terms("What colour is the flag of Chad?")]
        [('colour', False), ('flag', False), ('chad', True)]
    """
    periods = [found for found in find_periods(level(text)) if found.period.has_year]
    # 2024.1 may be a version
    dates = {key for one in periods for key in terms(text[one.begin : one.end]) if "." not in key}
    is_chinese = _HAN.search(text) is not None
    matches = (*_NAMED.finditer(text), *(_LATIN.finditer(text) if is_chinese else ()))
    named = {key for match in matches for key in terms(match[0])} - dates
    without_asking = _ASKING.sub(" ", fold(text)) if is_chinese else text
    keys = list(dict.fromkeys(terms(without_asking)))
    keys = [
        key for key in keys if len(key) > 1 or key.isascii()
    ] or keys  # a single Chinese character tells little
    salience = dict.fromkeys(terms(_FRAME_WORDS), _FRAME_SALIENCE) | dict.fromkeys(named, _NAME_SALIENCE)
    return tuple(Term(key, salience.get(key, 1.0), key in named, key in dates) for key in keys)


_NUMBERED = (
    r"第\s?(?P<han>[\d零一二三四五六七八九十百]{1,6})\s?(?P<unit>[章节条])"
    r"|(?P<word>(?<![^\W_])(?:article|section|clause)\b|§)\s?(?P<number>\d{1,3}(?:\.\d{1,3})*)"
)
#: A clause that a text names anywhere: 第十五条, 5.3条, Article 9.
REFERENCE = re.compile(rf"{_NUMBERED}|(?P<bare>\d{{1,3}}(?:\.\d{{1,3}})+)\s?条", re.IGNORECASE)
#: A line that is the heading of a clause: its number, and a few words without a stop or figures.
HEADING = re.compile(
    rf"(?:{_NUMBERED})(?:[\s:：.]+[^\s\d,，。；;：:][^\d,，。；;：:.]{{0,30}})?", re.IGNORECASE
)
_CLAUSE_MARK = re.compile(  # maybe in a heading, a quote or a list, or in bold
    rf"(?:[#>*_•·‣\s]|[-+](?=\s))*(?:{_NUMBERED}|(?P<bare>\d{{1,3}}(?:\.\d{{1,3}})+(?=[*_\s])|\d{{1,3}}(?=[.、)）]\D))[.、)）]?"
    r"|[(（][\d一二三四五六七八九十]{1,3}[)）]|[一二三四五六七八九十]{1,3}、)",
    re.IGNORECASE,
)
_OUTER_FIRST = "章节条"


class Clause(NamedTuple):
    """A clause of a contract or law: its unit (章, 节, 条, an English word or "") and its number."""

    unit: str
    number: str

    def is_among(self, asked: tuple[Clause, ...]) -> bool:
        """Tell whether it is one of the `asked` clauses; "3.2" and "Article 3" may be written without their unit."""
        of_number = {clause for clause in asked if clause.number == self.number}
        may_lack_unit = any("." in clause.number or clause.unit.isascii() for clause in of_number)
        return self in of_number or (may_lack_unit and not self.unit)

    def closes(self, other: Clause) -> bool:
        """Tell whether another clause ends where this one begins: 第三条 and 第二章 close 第二条, and 3 closes 2.1."""
        if self.unit:
            return not other.unit or _OUTER_FIRST.find(self.unit) <= _OUTER_FIRST.find(other.unit)
        return not other.unit and self.number.count(".") <= other.number.count(".")


def clauses_named(text: str) -> tuple[Clause, ...]:
    """List the clauses that a text names."""
    return tuple(filter(None, map(_clause, REFERENCE.finditer(text))))


def clause_begun(text: str) -> Clause | None:
    """Return the clause or item that a sentence or heading begins."""
    match = _CLAUSE_MARK.match(text)
    is_value = text.startswith(("- ", "* ", "+ ", "• ")) and without_mark(text) == text  # - 2.5 kW
    return _clause(match) if match and not is_value else None


def without_mark(sentence: str) -> str:
    """Remove the number of a clause or item before a sentence: it is no value that the sentence states.

    Example:
        >>> without_mark("2.1 The fee is 90 EUR."), without_mark("第二条 服务费用"), without_mark("2.5 kW suffice.")
        (' The fee is 90 EUR.', ' 服务费用', '2.5 kW suffice.')
    """
    mark = _CLAUSE_MARK.match(sentence)
    if not mark or any(value.start < mark.end() < value.end for value in find_values(sentence)[:1]):
        return sentence
    return sentence[mark.end() :]


def _clause(match: re.Match[str]) -> Clause | None:
    number = match["number"] or match["bare"] or (f"{read_any(match['han']):.0f}" if match["han"] else "")
    return Clause(match["unit"] or (match["word"] or "").lower(), number) if number else None


MAX_QUESTION = 4_000  # characters of a question that are read

_KINDS = {
    "when": (
        r"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:years?|date|day|month|century|decade)\b"
        r"|何时|什么时[候间]|哪[一]?[年天日]|几[年月日号]"
    ),
    "number": (
        r"\bhow (?:many|much|long|old|far|large|big|tall|high|often|fast|deep)\b|\bpercentage\b"
        r"|多[少大高长远久重宽深快]|几[个位次名人种]|第几|百分之几"
    ),
    "who": r"\bwho(?:m|se)?\b|谁|哪位|何人|什么人",
}
#: Asks how something is done, or for a setting, which code often answers.
HOW = re.compile(
    r"\bhow (?:do|can|could|should|may|must|to) |\b(?:which|what) (?:option|setting|command|parameter|variable)"
    r"|怎样|怎么|如何|哪[一个些]*(?:选项|设置|命令|参数|变量)",
    re.IGNORECASE,
)
_KIND_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}
_NAME = re.compile(
    r"(?<!^)\b[A-Z][\w'’.-]*[a-z]\w*(?:\s+(?:of|the|de|von|van|der|la|le|[A-Z][\w'’.-]*))*"
    r"|[\u3400-\u9fff]+[·•・][\u3400-\u9fff]+|[（(][A-Za-z]"
    r"|(?<=[\u3400-\u9fff])\s?[A-Z][a-z]+|[A-Z][a-z]+(?=\s?[\u3400-\u9fff])"
)


def offers(kind: str, sentence: str, question: str) -> bool:
    """Tell whether a sentence has a name, number or time, whichever `kind` asks for, that the question does not have.

    Example:
        >>> offers("number", "It has 76 rooms.", "How many rooms does it have?")
        True
        >>> offers("number", "It has rooms.", "How many rooms does it have?")
        False
    """
    if kind == "who":
        offered = [match[0] for match in _NAME.finditer(sentence)]
    elif kind in _KINDS:
        sentence = without_mark(sentence)
        values = [value for value in find_values(sentence) if value.dimension != "id"]
        wanted = [value for value in values if (value.dimension in CALENDAR) == (kind == "when")]
        offered = [sentence[value.start : value.end] for value in wanted]
    else:
        return False
    # 76 is not in 1976
    return not all(re.search(rf"(?<!\d){re.escape(text)}(?!\d)", question, re.IGNORECASE) for text in offered)


@dataclass(frozen=True)
class Question:
    """A question, analysed."""

    text: str
    language: str  # "en" or "zh"
    kind: str  # "who", "when", "number" or "other"
    terms: tuple[Term, ...]  # its content terms in order
    spans: tuple[TimeSpan, ...]  # the spans of time that it names
    clauses: tuple[Clause, ...]  # that it names
    keys: frozenset[str]  # the keys of its terms
    weights: Mapping[str, float]  # of its terms, together 1; 0 for dates, whose fit in time counts instead


@lru_cache(maxsize=256)
def analyse(text: str) -> Question:
    """Analyse a question.

    Example:
        >>> question = analyse("Who led Iceland from 1990 to 1994?")
        >>> question.kind, [term.key for term in question.terms][:2], question.spans
        ('who', ['led', 'iceland'], (TimeSpan(start=1990.0, end=1995.0),))
    """
    text = text[:MAX_QUESTION]
    kind = next((kind for kind, pattern in _KIND_PATTERNS.items() if pattern.search(text)), "other")
    terms, spans, clauses = question_terms(text), time_spans(text), clauses_named(text)
    salience = {term.key: 0.0 if spans and term.date else term.salience for term in terms}
    if not any(salience.values()):  # it asks about a time and nothing else
        salience = {term.key: term.salience for term in terms}
    total = sum(salience.values()) or 1.0
    weights = {key: value / total for key, value in salience.items()}
    return Question(text, detect_language(text), kind, terms, spans, clauses, frozenset(weights), weights)
