"""Terms that evidence is counted in: stemmed words, and character pairs for Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from rag_kit.models.extractive.words import COMMON, FRAME
from rag_kit.text import content_words, fold

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
# Words that frame a question and are not expected in its answer.
_FRAME = re.compile(
    r"请问|(?:是|有|叫做?|为)?(?:什么|哪些|哪[一个位种里儿年些名]|多少|如何|怎样|怎么样?|为何|何时|何处|何地|何人|谁|几)(?:样|时候|时间|地方)?"
    r"|[的了吗呢是在和与及而于由被把所其之以]"
)

_MARKED = re.compile(
    r"(?<=[\s(])[A-Z][\w'’.-]*|\b[A-Z]{2,}\b|[!-~]*\d[!-~]*|[“\"「《『]([^”\"」》』]{1,40})[”\"」》』]"
)
_COMMON_SALIENCE, _FRAME_SALIENCE = 0.6, 0.3
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_DATE = re.compile(
    r"\b(?:1\d|20)\d{2}s?\b|\d+ ?[年月日]"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]*)\b(?= ?\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Term:
    """A term of a question.

    Attributes:
        key: The normalised form that is looked for.
        salience: How much the term pins the question down: 1 for a plain word, more for names, numbers
            and identifiers, less for words that only frame a question.
        nominal: Whether it looks like a name, number or identifier.
        date: Whether it is a part of a date; how well times fit is judged apart from words.
    """

    key: str
    salience: float
    nominal: bool
    date: bool = False


@lru_cache(maxsize=8192)
def terms(text: str) -> tuple[str, ...]:
    """Split text into terms, repeated ones kept, in order.

    Example:
        >>> terms("The Rhine floods 奥尔斯顿")
        ('rhine', 'flood', '奥尔', '尔斯', '斯顿')
    """
    found: list[str] = []
    end = 0
    text = fold(text)
    for match in _HAN.finditer(text):
        found.extend(content_words(text[end : match.start()]))
        run = match.group()
        found.extend([run[i : i + 2] for i in range(len(run) - 1)] or [run])
        end = match.end()
    found.extend(content_words(text[end:]))
    return tuple(found)


@lru_cache(maxsize=256)
def question_terms(text: str) -> tuple[Term, ...]:
    """The distinct terms of a question with their salience, in order.

    Example:
        >>> [(t.key, t.nominal) for t in question_terms("What colour is the flag of Chad?")]
        [('colour', False), ('flag', False), ('chad', True)]
    """
    found: dict[str, Term] = {}
    dates = {key for match in _DATE.finditer(text) for key in terms(match.group())}
    marked = {key for match in _MARKED.finditer(text) for key in terms(match.group())} - dates
    has_han = _HAN.search(text) is not None
    if has_han:
        marked |= {key for match in _LATIN.finditer(text) for key in terms(match.group())}
    plain = _FRAME.sub(" ", fold(text)) if has_han else text
    for key in terms(plain):
        if key in found:
            continue
        nominal = key in marked
        salience = 1.5 if nominal else _light().get(key, 1.0)
        found[key] = Term(key, salience, nominal, key in dates)
    pairs = [term for term in found.values() if len(term.key) > 1 or term.key.isascii()]
    return tuple(pairs or found.values())


@cache
def _light() -> dict[str, float]:
    """Stems of frequent words with their salience."""
    common = dict.fromkeys((key for word in COMMON for key in content_words(word)), _COMMON_SALIENCE)
    return common | dict.fromkeys((key for word in FRAME for key in content_words(word)), _FRAME_SALIENCE)
