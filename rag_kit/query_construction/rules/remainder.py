"""What is left of a question when its conditions are taken out."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FRAME = re.compile(
    r"\b(?:show|find|list|give|get|fetch|search|return|want|need|look(?:ing)?|me|us|i|we|please|all|any|some|the|a|an|of|to|for|"
    r"papers?|articles?|stud(?:y|ies)|publications?|documents?|abstracts?|records?|reports?|literature|research|works?|"
    r"about|on|regarding|concerning|with|that|which|are|is|were|was|be|been|there|from|in|and|or|but|not|either|both|only|"
    r"tagged|labell?ed|indexed|under|as|mesh|terms?|headings?|published|dated|written|years?|what|who|how\s+many|do|does|"
    r"have|has|having|say|says|at\s+least\s+one)\b"
    r"|请|找出?|查找|检索|搜索|列出|给我|我要|我想|所有|全部|哪些|有关|关于|文章|论文|文献|研究|发表|出版|主题词|标签|的|了|和|与|或者?|且|并|是|在|吗|呢",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:\b(?:tagged|labell?ed|indexed|marked|with|without|under|by|as|about|on|of|in|from|for|published|dated|written|the|mesh|"
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
