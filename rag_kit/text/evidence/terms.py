"""Terms that evidence is counted in: stemmed words, and character pairs for Chinese."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.language import fold

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
# words that ask, and particles: not expected in an answer
_ASKING = re.compile(
    r"请问|(?:是|有|叫做?|为)?(?:什么|哪些|哪[一个位种里儿年些名]|多少|如何|怎样|怎么样?|为何|何时|何处|何地|何人|谁|几)(?:样|时候|时间|地方)?"
    r"|[的了吗呢是在和与及而于由被把所其之以]"
)
_NAMED = re.compile(
    r"(?<=[\s(])[A-Z][\w'’.-]*|\b[A-Z]{2,}\b|[!-~]*\d[!-~]*|[“\"「《『]([^”\"」》』]{1,40})[”\"」》』]"
)
_DATE = re.compile(
    r"\b(?:1\d|20)\d{2}s?\b|\d+ ?[年月日]"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]*)\b(?= ?\d)",
    re.IGNORECASE,
)
# frequent English words that carry little of a question's topic, so that rarer ones decide
_FRAME = (
    "name names named call called type types kind kinds sort many much year years date time times person people "
    "thing things term terms word words happen happened happens according following given mean means meant "
    "main long often number amount percentage example examples reason reasons way ways describe list "
    "considered known refer refers referred"
)
FRAME_WORDS = frozenset(_FRAME.split())
"""English words that frame a question: "What kind of ...", "Name the ..."."""
_COMMON = (
    "able accept according account act action active actual add age ago allow almost already also always area "
    "around ask away back bad base based become before begin believe best better big body book both bring build "
    "built business buy came carry case cause certain change child children city claim class clear close come "
    "common company complete contain continue control cost could country course cover create current cut day "
    "days decide decision deal deep develop development differ difference different difficult do doing done down "
    "draw drive during early easy effect effects either else end enough even event ever every exist face fact "
    "fall family far feel few field figure final find first follow force form former found full further future "
    "gave general get give go goal good got great group grow had half hand hard have head hear held help high "
    "hold home hour house idea impact important include increase individual inside instead interest involve issue "
    "issues item just keep kept kill know known lack land large last late later law lead leader learn least leave "
    "led left less let level life light like likely limit line little live local look lose lost lot low made make "
    "making man manage may member members method might million mind minor moment money month more most move much "
    "must national nation near need needed new next night nothing now occur offer office old once one open "
    "opinion order organization original others own page part particular party pass past pay people perform "
    "period person place plan play point popular position possible power present prevent problem process produce "
    "program provide public purpose put question quite rate reach read real receive recent relate related remain "
    "report require result results return right role run said same save say school second see seem sell send "
    "serve service set several shape share short show side similar since single size small social some source "
    "south special stand start started state states stay still stop story strong study success such support take "
    "taken talk tell three today together told took top total toward travel try turn two type under understand "
    "unit until use used user uses using usual value various very view want war watch water week well went west "
    "whole wide win within without won woman women work world would write written wrong year young"
)


class Term(NamedTuple):
    """A term of a question.

    Attributes:
        key: The normalised form that is looked for.
        salience: 1 for a plain word, 1.5 for names, numbers and identifiers, less for frequent words.
        nominal: Whether it looks like a name, number or identifier.
        date: Whether it is a part of a date.
    """

    key: str
    salience: float
    nominal: bool
    date: bool


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
    dates = {key for match in _DATE.finditer(text) for key in terms(match.group())}
    named = {key for match in _NAMED.finditer(text) for key in terms(match.group())} - dates
    plain = text
    if _HAN.search(text):
        named |= {key for match in _LATIN.finditer(text) for key in terms(match.group())}
        plain = _ASKING.sub(" ", fold(text))
    found = [
        Term(key, 1.5 if key in named else _light().get(key, 1.0), key in named, key in dates)
        for key in dict.fromkeys(terms(plain))
    ]
    return tuple(term for term in found if len(term.key) > 1 or term.key.isascii()) or tuple(found)


@cache
def _light() -> dict[str, float]:
    """Stems of frequent words with their salience."""
    common = dict.fromkeys((key for word in _COMMON.split() for key in content_words(word)), 0.6)
    return common | dict.fromkeys((key for word in FRAME_WORDS for key in content_words(word)), 0.3)
