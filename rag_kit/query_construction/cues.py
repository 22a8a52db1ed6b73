"""The words around a date, number or value that say how it is compared, and those that say nothing."""

from __future__ import annotations

import re
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
_LIGHT_WORD = rf"(?:{'|'.join(sorted(map(re.escape, _WORDS.split()), key=len, reverse=True))})(?:['’]s)?\b"
_ZH_LIGHT_WORD = (
    r"(?:在|于|是|为|的|有|被|带有|带|含有|包含|包括|含|涉及|关于|有关|针对|研究|讨论|属于|主题词|主题|关键词|标签|标注|标记|"
    r"索引|词|中|里|了|任何|哪些|那些|这些|论文|文章|文献|发表|出版|发布|签订|签署|年份|时间|和|与|及|以|到)"
)
LIGHT = rf"(?:{_LIGHT_WORD}|[:=\"“”'‘’(]|\s)"
ZH_LIGHT = rf"(?:{_ZH_LIGHT_WORD}|[\s\"“”‘’'「」『』《》:：(（])"
_NEGATION = (
    r"(?:\b(?:not(?!\s+(?:only|just|merely|simply)\b)|no|never|without|exclud(?:e|es|ing)|"
    r"with\s+the\s+exception\s+of|except(?:ing)?(?:\s+for)?|other\s+than|apart\s+from|aside\s+from|besides|"
    r"lack(?:s|ing)?|omit(?:s|ting)?|leav(?:e|ing)\s+out|ignor(?:e|ing)|skip(?:ping)?|minus|"
    r"rather\s+than|instead\s+of|neither|nor|free\s+of|outside(?:\s+of)?|avoid(?:s|ing)?|"
    r"unrelated\s+to|nothing|none|cannot|can['’]?t|(?:do|does|did|is|are|was|were|has|have|should|must)n['’]?t|"
    r"(?:any|every|all|no)\w*(?:\s+\w+)?\s+but)\b|\bnon-|!=\s*|<>\s*|≠\s*)"
)
_ZH_NEGATION = (
    r"(?:不(?!仅|但|只|同|过|少|断|管)|没有?|未(?!来)|无(?!论)|(?<![南北西东中是并除莫])非(?!常|洲)|除去?了?(?!非)|排除|剔除|去掉|而非)"
    r"(?:要|是|在|含|带)?"
)
# Possessive (*+): a run of such words is never taken apart again, so that no text makes the search slow.
NEGATED = re.compile(rf"(?:{_NEGATION}{LIGHT}*+|{_ZH_NEGATION}{ZH_LIGHT}*+)$", _I)
ALL_LIGHT = re.compile(rf"(?:{LIGHT}|{ZH_LIGHT})*+", _I)
REACH = 160  # characters before a date or value that are looked at
TOPIC = re.compile(
    r"(?i)\b(?:about|on|regarding|concerning|involv\w+|cover\w*|mention\w*|discuss\w*|address\w*|topics?|subjects?)\s+(?:the\s+)?$"
    r"|(?:关于|有关|针对|涉及|研究|讨论)\s*$",
)
EXCLUDED_AFTER = re.compile(
    r"(?i)\s*[\"”’'」』]?\s*(?:(?:papers|articles|studies)\s+)?(?:(?:are|is|be|being|to\s+be)\s+)?(?:excluded|left\s+out|omitted)\b"
    r"|\s*[\"”’]?\s*(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:a|an|the|among|one\s+of|in|listed|present|tagged|included)\b"
    r"|\s*[\"”’'」』]?\s*的?(?:文章|论文|研究|文献)?(?:除外|不要|不算|以外|之外|无关)",
)
OUTSIDE = re.compile(r"外(?=[的，,。？?]|$)")  # after 除; alone it is in 细胞外的 and 海外的
OPENING, CLOSING = "\"“'‘「『《", "\"”'’」』》"
STATE_OF = re.compile(r"截至|截止|ending\b", _I)
POSSESSION = re.compile(r"['’]s?\s+\w|的(?=[\u3400-\u9fff])")
CONNECTOR = re.compile(
    r"(?i)\b(?P<not>but\s+not|and\s+not|or\s+not)\b|\b(?P<or>or|and/or|nor)\b|(?P<zh_or>或者?是?|抑或)"
    r"|\b(?P<but>but|yet|though|whereas)\b|(?P<zh_but>但是?|不过|而(?!且))"
    r"|\b(?P<and>and|plus|as\s+well\s+as|together\s+with)\b|&|(?P<zh_and>以及|并且|而且|同时|和|与|及|且|并|也)"
    r"|(?P<comma>[,;、/])",
)

_FILLER = r"(?:\s*(?:the|years?|date|in|of|about|around)\b)*\s*"
_NOT = r"(?:\b(?:no|not|never)|n['’]t)\s+(?:(?:published|dated|written|released|from)\s+)*"
_GT = (
    r"after|later\s+than|(?:more\s+)?recent\s+than|newer\s+than|past|beyond|greater\s+than|larger\s+than|higher\s+than|"
    r"longer\s+than|more\s+than|more\s+expensive\s+than|above|over|exceed(?:s|ing)?"
)
_LT = (
    r"before|prior\s+to|earlier\s+than|older\s+than|preceding|less\s+than|fewer\s+than|smaller\s+than|lower\s+than|"
    r"shorter\s+than|cheaper\s+than|below|under"
)
_GTE = (
    r"since|(?:starting|beginning)(?:\s+(?:in|from|with|at))?|as\s+from|at\s+least|a\s+minimum\s+of|minimum"
)
_LTE = (
    r"up\s+to(?:\s+and\s+including)?|(?:up\s+)?until|till|through|thru|by|at\s+most|"
    r"a\s+maximum\s+of|maximum|ending(?:\s+(?:in|with))?"
)
_ZH_DIGITS = "一二三四五六七八九十两几"
_NOT_AFTER = rf"期(?!刊)|半(?!导)|[\d{_ZH_DIGITS}]+个?[月季年]"  # 2015年前三个月 is not before 2015
_ZH_FILL = r"(?:发表|出版|发布|签订|签署)?(?:于|在|是|为|的|年份|时间|\s)*"
_INCLUDED = r"(?:\s+or\s+(?:in|on|during|from|equal(?:s)?(?:\s+to)?|as\s+of))"
_IN_OR = r"(?:in|on|during|from|at|equal\s+to)\s+or\s+"
LEFT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:{pattern})$", _I), operator)
    for pattern, operator in {
        rf"\bup\s+to\s*,?\s*but\s+not\s+including\s*,?{_FILLER}": "$lt",
        rf"\b(?:{_IN_OR}(?:{_LT})|(?:{_LT}){_INCLUDED}){_FILLER}": "$lte",
        rf"\b(?:{_IN_OR}(?:{_GT})|(?:{_GT}){_INCLUDED}){_FILLER}": "$gte",
        rf"{_NOT}(?:{_GT}){_FILLER}|\b(?:{_LTE}){_FILLER}|(?:<=|≤)\s*"
        rf"|(?:不(?:晚于|迟于|超过|大于|高于|多于)|小于(?:或)?等于|截[至止]到?|直到|(?:^|(?<=[\s，,、。；;的]))[到至]"
        rf"|至多|最多(?!的)){_ZH_FILL}": "$lte",
        rf"{_NOT}(?:{_LT}){_FILLER}|\b(?:{_GTE}){_FILLER}|(?:>=|≥)\s*"
        rf"|(?:不(?:早于|小于|低于|少于)|大于(?:或)?等于|至少|最少|自从|自){_ZH_FILL}": "$gte",
        rf"\b(?:{_GT}){_FILLER}|\bpost[-\s]?|>\s*|(?:晚于|迟于|大于|超过|高于|多于){_ZH_FILL}": "$gt",
        rf"\b(?:{_LT}){_FILLER}|\bpre[-\s]?|<\s*|(?:早于|小于|低于|少于|不到|不足|不满|未满){_ZH_FILL}": "$lt",
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
NOT_YEARS = re.compile(
    r"(?i)\s*(?:%|(?:[a-z]+\s+)?(?:patients|participants|people|women|men|children|cases|samples|users|words|dollars|euros|mg|ml|"
    r"kg|km|cm|mm|times|days|hours|minutes)\b|[名例位个人次条篇页元岁])",
)
DOCUMENTS = re.compile(
    r"(?i)\b(?:papers?|articles?|studies|works|publications?|documents?|abstracts?|records|reports|files|literature|entries|"
    r"anything|everything|items)\b|论文|文章|文献|文档|文件|研究(?:[？?。]?$|有|中)|资料",
)
REQUEST = re.compile(
    r"(?i)^\s*(?:please\s+|(?:could|can)\s+you\s+)?(?:show|find|list|give|get|fetch|search|retrieve|return|look)\b"
    r"|(?:^|[.;:?!])\s*(?:only\s+)?(?:exclude|filter|limit|restrict)\b"
    r"|\b(?:I|we)\s+(?:want|need|would\s+like|am\s+looking)\b|查找|检索|搜索|列出|找出|给出|给我|我[要想]",
)
QUESTION = re.compile(
    r"(?i)[?？]|^\s*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|"
    r"will|would|should|may)\b|[什怎何吗呢]|多少|哪|几|是否|有没有",
)
_ET_AL = r"\bet\s+al\.?,?\s*\(?"
# "13 (1970)", "Lee et al., 1970", "(Lee, 1970)" and "1970;13:5" are references
_BEFORE_REFERENCE = re.compile(rf"(?:\d\s*[卷期]?\s*\(|{_ET_AL}|\([A-Z][^()]{{0,60}},\s*)$")
_AFTER_REFERENCE = re.compile(r"年?(?:\s?[;:]\s?\d|[,\s]*第?\d+[卷期])")
_CITED = re.compile(rf"\s+{_ET_AL}\d")
# things that have a number: the 1918 of "RFC 1918" is no year
_NUMBERED = re.compile(
    r"\b(?:RFC|ISO|IEC|DIN|IEEE|rooms?|versions?|pages?|sections?|chapters?|clauses?|paragraphs?|forms?|ports?|errors?|"
    r"numbers?|no\.)\s*$",
    _I,
)


def is_no_date(text: str, year: TextSpan) -> bool:
    """Tell whether what looks like a year is part of a reference to a publication, or the number of something."""
    before = text[max(0, year.begin - 64) : year.begin]
    is_reference = _BEFORE_REFERENCE.search(before) or _AFTER_REFERENCE.match(text, year.end)
    return bool(is_reference or _NUMBERED.search(before))


def is_cited(text: str, name: TextSpan) -> bool:
    """Tell whether a name is that of a reference: "Lee" of "Lee et al., 1970"."""
    return _CITED.match(text, name.end) is not None


_FRAME = re.compile(
    rf"(?i){_NEGATION}|\b{_LIGHT_WORD}|\bor\b|{_ZH_LIGHT_WORD}|请|之间|期间|找出?|查找|检索|搜索|列出|给我|我[要想]|所有|全部|或者?|且|并|既|也|吗|呢",
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
