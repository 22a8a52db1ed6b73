"""Words and numbers as they are compared, and what is left of a question without the words that are understood."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from rag_kit.text import fold

HAN = re.compile(r"[\u3400-\u9fff]")
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:[,，]\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_IRREGULAR = {
    "children": "child", "women": "woman", "men": "man", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "people": "person", "diagnoses": "diagnosis", "prognoses": "prognosis", "metastases": "metastasis",
    "analyses": "analysis", "criteria": "criterion", "data": "datum", "vertebrae": "vertebra",
    "knives": "knife", "lives": "life", "wives": "wife", "leaves": "leaf", "shelves": "shelf", "halves": "half",
    "wolves": "wolf", "calves": "calf", "loaves": "loaf", "scarves": "scarf", "thieves": "thief", "geese": "goose",
}  # fmt: skip
_SPELLING = (
    ("tumour", "tumor"), ("haem", "hem"), ("oedem", "edem"), ("aemi", "emi"), ("paed", "ped"), ("oesoph", "esoph"),
    ("behaviour", "behavior"), ("colour", "color"), ("labour", "labor"), ("isation", "ization"), ("foet", "fet"),
    ("centre", "center"), ("programme", "program"), ("gynaec", "gynec"), ("orthopaed", "orthoped"),
)  # fmt: skip


def singular(word: str) -> str:
    """A crude singular, for comparing words only: both sides go through it.

    Example:
        >>> [singular(word) == singular(plural) for word, plural in
        ...  [("report", "reports"), ("movie", "movies"), ("battery", "batteries"), ("virus", "viruses"),
        ...   ("box", "boxes"), ("hero", "heroes"), ("case", "cases"), ("salesman", "salesmen")]]
        [True, True, True, True, True, True, True, True]
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 5:
        for british, american in _SPELLING:
            word = word.replace(british, american)
    if len(word) > 4 and word.endswith("men"):
        return word[:-2] + "an"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    # "movies" and "movie", "batteries" and "battery" meet at the y; "viruses", "cases" and "heroes" at the letter
    # before the e
    if len(word) > 3 and word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if len(word) > 3 and word.endswith(("se", "ze", "xe", "oe")) else word


def same_words(text: str) -> tuple[str, ...]:
    """The words of a text, sorted, each in the singular: ``Neoplasms, Breast`` is ``breast neoplasm``."""
    return tuple(sorted(singular(word) for word in re.findall(r"[^\W_]+", fold(text))))


def simplified(text: str) -> str:
    """The text with each traditional character as its simplified one, at the same place.

    Example:
        >>> simplified('研發部 2019年以後 ABC')
        '研发部 2019年以后 ABC'
    """
    return HAN.sub(lambda match: made if len(made := fold(match.group())) == 1 else match.group(), text)


def parse_number(text: str) -> int | float | None:
    """A number in a text: ``"1,200"``, ``"4.5"``, ``" 3 "``.

    Example:
        >>> parse_number("1,200"), parse_number("4.5"), parse_number("many")
        (1200, 4.5, None)
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        return None
    plain = text.replace(",", "").replace("，", "")
    try:
        return int(plain)
    except ValueError:
        number = float(plain)
        return number if math.isfinite(number) else None


def short(value: Any) -> str:
    """A value as it is written, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_FRAME = re.compile(
    r"\b(?:show|find|list|give|get|fetch|search|return|want|need|look(?:ing)?|me|us|i|we|please|all|any|some|the|a|an|of|to|for|"
    r"papers?|articles?|stud(?:y|ies)|publications?|documents?|abstracts?|records?|reports?|literature|research|works?|"
    r"about|on|regarding|concerning|with|that|which|are|is|were|was|be|been|there|from|in|and|or|but|not|either|both|only|"
    r"tagged|labell?ed|indexed|under|as|mesh|terms?|headings?|published|dated|written|released|issued|years?|inclusive|what|who|how\s+many|do|does|"
    r"have|has|having|say|says|at\s+least\s+one)\b"
    r"|请|之间|期间|找出?|查找|检索|搜索|列出|给我|我要|我想|所有|全部|哪些|有关|关于|文章|论文|文献|研究|发表|出版|主题词|标签|的|了|和|与|或者?|且|并|是|在|吗|呢",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:\b(?:tagged|labell?ed|indexed|marked|with|without|under|by|as|about|on|of|in|from|for|published|dated|written|released|issued|appear(?:ed|ing)|years?|the|mesh|"
    r"terms?|headings?|tags?|keywords?|and|or|but|not|only|either|both|that|which|are|is)\b|[\s\"“‘「(:=])++$",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"\(\s*\)|\"\s*\"|“\s*”|「\s*」")


def remainder(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """The text without the spans, and the same without the words that only frame a request.

    Example:
        >>> remainder("Papers on sleep after 2010 tagged Aged", [(16, 26), (34, 38)])
        ('Papers on sleep', 'sleep')
    """
    kept, position = [], 0
    for begin, end in sorted(spans):
        if begin >= position:
            # "tagged" says nothing without the tag
            kept.append(_DANGLING.sub(" ", text[position:begin]))
        position = max(position, end)
    kept.append(text[position:])
    rest = _EMPTY.sub(" ", " ".join(kept))
    rest = re.sub(r"\s+", " ", re.sub(r"\s+([,.;:?!])", r"\1", rest))
    rest = re.sub(r"(?:^|(?<=[,;]))\s*[,;]+", "", rest).strip(" ,;:、，")
    return rest, re.sub(r"\s+", " ", _FRAME.sub(" ", rest)).strip(" ,.;:?!、，。？！")
