"""The words around a date, number or value that say how it is compared, and those that say nothing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rag_kit.text import fold
from rag_kit.text.values.periods import TextSpan

HAN = re.compile(r"[\u3400-\u9fff]")
_IRREGULAR = {
    "children": "child", "women": "woman", "men": "man", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "people": "person", "diagnoses": "diagnosis", "analyses": "analysis", "criteria": "criterion",
}  # fmt: skip


def singular(word: str) -> str:
    """Reduce a word to a crude singular, for comparing words that both went through this."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    # "movies" and "movie", "batteries" and "battery" meet at the y; "viruses", "cases" and "heroes" at the letter
    # before the e
    if len(word) > 3 and word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if len(word) > 3 and word.endswith(("se", "ze", "xe", "oe")) else word


def sorted_words(text: str) -> tuple[str, ...]:
    """Sort the words of a text, each in the singular: ``Neoplasms, Breast`` is ``breast neoplasm``."""
    return tuple(sorted(singular(word) for word in re.findall(r"[^\W_]+", fold(text))))


S = TypeVar("S", bound=TextSpan)


def longest_spans(spans: Iterable[S]) -> list[S]:
    """Return spans in order, without overlap: of overlapping spans the longest stays, of equal ones the first."""
    chosen: list[S] = []
    for span in sorted(spans, key=lambda span: (span.begin - span.end, span.begin)):  # the longest first
        if not span.overlaps(chosen):
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.begin)


_I = re.IGNORECASE
# Words between a cue and what it is about, or around a request, which say nothing themselves.
_WORDS = Path(__file__).with_name("light_words.txt").read_text(encoding="utf-8")
# a blank in the table stands for any white space, line breaks are for the eye
_TABLE = tomllib.loads(Path(__file__).with_name("cues.toml").read_text(encoding="utf-8"))
_CUES = {name: text.replace("\n", "").replace(" ", r"\s+") for name, text in _TABLE.items()}
_LIGHT_WORD = rf"(?:{'|'.join(sorted(map(re.escape, _WORDS.split()), key=len, reverse=True))})(?:['’]s)?\b"
LIGHT = rf"(?:{_LIGHT_WORD}|[:=\"“”'‘’(]|\s)"
ZH_LIGHT = rf"(?:{_CUES['zh_light_word']}|[\s\"“”‘’'「」『』《》:：(（])"
# Possessive (*+): a run of such words is never taken apart again, so that no text makes the search slow.
NEGATED = re.compile(rf"(?:{_CUES['negation']}{LIGHT}*+|{_CUES['zh_negation']}{ZH_LIGHT}*+)$", _I)
ALL_LIGHT = re.compile(rf"(?:{LIGHT}|{ZH_LIGHT})*+", _I)
REACH = 160  # characters before a date or value that are looked at
TOPIC = re.compile(_CUES["topic"])
EXCLUDED_AFTER = re.compile(_CUES["excluded_after"])
OUTSIDE = re.compile(r"外(?=[的，,。？?]|$)")  # after 除; alone it is in 细胞外的 and 海外的
OPENING, CLOSING = "\"“'‘「『《", "\"”'’」』》"
STATE_OF = re.compile(r"截至|截止|ending\b", _I)
POSSESSION = re.compile(r"['’]s?\s+\w|的(?=[\u3400-\u9fff])")
CONNECTOR = re.compile(_CUES["connector"])

_FILLER = r"(?:\s*(?:the|years?|date|in|of|about|around)\b)*\s*"
_NOT = r"(?:\b(?:no|not|never)|n['’]t)\s+(?:(?:published|dated|written|released|from)\s+)*"
_ZH_DIGITS = "一二三四五六七八九十两几"
_NOT_AFTER = rf"期(?!刊)|半(?!导)|[\d{_ZH_DIGITS}]+个?[月季年]"  # 2015年前三个月 is not before 2015
_ZH_FILL = r"(?:发表|出版|发布|签订|签署)?(?:于|在|是|为|的|年份|时间|\s)*"
_INCLUDED = r"(?:\s+or\s+(?:in|on|during|from|equal(?:s)?(?:\s+to)?|as\s+of))"
_IN_OR = r"(?:in|on|during|from|at|equal\s+to)\s+or\s+"
LEFT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:{pattern})$", _I), operator)
    for pattern, operator in {
        rf"\bup\s+to\s*,?\s*but\s+not\s+including\s*,?{_FILLER}": "$lt",
        rf"\b(?:{_IN_OR}(?:{_CUES['lt']})|(?:{_CUES['lt']}){_INCLUDED}){_FILLER}": "$lte",
        rf"\b(?:{_IN_OR}(?:{_CUES['gt']})|(?:{_CUES['gt']}){_INCLUDED}){_FILLER}": "$gte",
        rf"{_NOT}(?:{_CUES['gt']}){_FILLER}|\b(?:{_CUES['lte']}){_FILLER}|(?:<=|≤)\s*"
        rf"|(?:不(?:晚于|迟于|超过|大于|高于|多于)|小于(?:或)?等于|截[至止]到?|直到|(?:^|(?<=[\s，,、。；;的]))[到至]"
        rf"|至多|最多(?!的)){_ZH_FILL}": "$lte",
        rf"{_NOT}(?:{_CUES['lt']}){_FILLER}|\b(?:{_CUES['gte']}){_FILLER}|(?:>=|≥)\s*"
        rf"|(?:不(?:早于|小于|低于|少于)|大于(?:或)?等于|至少|最少|自从|自){_ZH_FILL}": "$gte",
        rf"\b(?:{_CUES['gt']}){_FILLER}|\bpost[-\s]?|>\s*|(?:晚于|迟于|大于|超过|高于|多于){_ZH_FILL}": "$gt",
        rf"\b(?:{_CUES['lt']}){_FILLER}|\bpre[-\s]?|<\s*|(?:早于|小于|低于|少于|不到|不足|不满|未满){_ZH_FILL}": "$lt",
    }.items()
)
_END = r"(?=\s*(?:$|[,.;:?!)]|(?:about|tagged|with|that|which|and|but|or|concerning|regarding|only)\b))"
_MORE = r"(?:later|newer|after(?:wards?)?|onwards?|beyond|more\s+recent(?:ly)?|above|up|since|higher|greater|more|over)"
RIGHT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"\s*(?:{pattern})", _I), operator)
    for pattern, operator in {
        rf",?\s*at\s+the\s+earliest\b|,?\s*(?:and|or)\s+(?:any(?:thing)?\s+)?{_MORE}\b|onwards?\b|\+(?!\w)|and\s+on\b{_END}"
        r"|(?:-|–|—|to|until|till|through|up\s+to)\s*(?:the\s+)?(?:present|now|today|date)\b"
        r"|(?:\(含[^)]*\)|[及或])(?:之|以)?后|以来|起(?!码)|开始|至今|到现在|[及或]更晚|以上": "$gte",
        r",?\s*at\s+the\s+latest\b"
        r"|,?\s*(?:and|or)\s+(?:any(?:thing)?\s+)?(?:earlier|before|older|prior|lower|less|fewer|below|under)\b"
        r"|(?:\(含[^)]*\)|[及或])(?:之|以)?前|[为截]?止(?!痛|血)|[及或]更早|以下|以内": "$lte",
        rf"[之以]后|后(?!{_NOT_AFTER}|[续果端])": "$gt",
        rf"[之以]前|前(?!{_NOT_AFTER}|[列沿瞻臂后])": "$lt",
    }.items()
)
ONWARD = re.compile(rf"\s+on\b{_END}", _I)
FROM = re.compile(r"(?:\bfrom\s+(?:the\s+)?(?:years?\s+)?|从|自)$", _I)
BETWEEN = re.compile(r"(?:\bbetween\s+(?:the\s+)?(?:years?\s+)?|介于|在)$", _I)
RANGE_AND = re.compile(r"\s*(?:\band\b|&|和|与|、)\s*(?:the\s+)?$", _I)
NOT_YEARS = re.compile(_CUES["not_years"])
DOCUMENTS, REQUEST, QUESTION = (re.compile(_CUES[name]) for name in ("documents", "request", "question"))
# "13 (1970)", "Lee et al., 1970", "(Lee, 1970)" and "1970;13:5" are references
_BEFORE_REFERENCE = re.compile(r"(?:\d\s*[卷期]?\s*\(|\bet\s+al\.?,?\s*\(?|\([A-Z][^()]{0,60},\s*)$")
_AFTER_REFERENCE = re.compile(r"年?(?:\s?[;:]\s?\d|[,\s]*第?\d+[卷期])")


def is_reference(text: str, year: TextSpan) -> bool:
    """Tell whether a year is part of a reference to a publication."""
    before = text[max(0, year.begin - 64) : year.begin]
    return bool(_BEFORE_REFERENCE.search(before) or _AFTER_REFERENCE.match(text, year.end))


_FRAME = re.compile(
    rf"(?i){_CUES['negation']}|\b{_LIGHT_WORD}|\bor\b|{_CUES['zh_light_word']}|请|之间|期间|找出?|查找|检索|搜索|列出|给我|我[要想]|所有|全部|或者?|且|并|既|也|吗|呢",
)
# words and marks at the end of a text that need something after them: "sleep, but not (" -> " but not ("
_DANGLING = re.compile(rf"(?:\b(?:{_LIGHT_WORD}|(?:without|but|not|only|and|or)\b)|[\s\"“‘「(:=])++$", _I)


def with_negation(text: str, floor: int, begin: int, end: int) -> tuple[int, int, bool]:
    """Widen a span by a negation before it ("no sleep"), from `floor` on, or after it; tell whether there is one."""
    before, after = NEGATED.search(text[floor:begin]), EXCLUDED_AFTER.match(text, end)
    begin = floor + before.start() if before else begin
    return begin, after.end() if after else end, bool(before or after)


def remainder(text: str, spans: Sequence[TextSpan]) -> str:
    """Cut spans out of a text, and with them stray commas and the words before them that mean nothing alone."""
    kept, position = [], 0
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        if span.begin >= position:  # else it overlaps the span before it
            # "tagged" means nothing without the tag after it
            kept.append(_DANGLING.sub(" ", text[position : span.begin]))
        position = max(position, span.end)
    kept.append(text[position:])
    remaining = re.sub(r"\s+", " ", " ".join(kept))
    remaining = re.sub(r"\s+([,.;:?!])", r"\1", remaining)  # "sleep , , please ?" -> "sleep,, please?"
    remaining = re.sub(r"(?:^|(?<=[,;]))\s*[,;]+", "", remaining)  # "sleep,, please?" -> "sleep, please?"
    return remaining.strip(" ,;:、，")


def without_frame(text: str) -> str:
    """Remove the words of a text, in simplified characters, that only frame a request."""
    return re.sub(r"\s+", " ", _FRAME.sub(" ", text)).strip(" ,.;:?!、，。？！")
