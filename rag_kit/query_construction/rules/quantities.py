"""Numbers that say by their unit, or by a word such as "cheaper", which numeric field they are of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.structured_query import Comparator

from rag_kit.query_construction.coercion import singular
from rag_kit.query_construction.fields import MetadataField


@dataclass(frozen=True)
class Kind:
    """A kind of quantity; all but ``names`` are patterns.

    Attributes:
        names: Words in the name of a field of this kind.
        units: What follows the number.
        verbs: What stands before the number: "rated 4".
        more: Comparatives that mean a greater number.
        less: Comparatives that mean a smaller one.
    """

    names: str
    units: str = r"(?!)"
    verbs: str = r"(?!)"
    more: str = r"(?!)"
    less: str = r"(?!)"

    def fits(self, field: MetadataField) -> bool:
        """Whether a field is of this kind, by its names."""
        return any(word in name_words(field) for word in self.names.split()) or any(
            word in name for word in self.names.split() if not word.isascii() for name in _all_names(field)
        )


KINDS = (
    Kind(
        "price cost fee amount salary wage rent fare budget 价 费 金额 薪 工资 成本 租金 预算",
        r"(?:us\s+)?dollars?\b|usd\b|bucks?\b|euros?\b|eur\b|pounds?\b|gbp\b|yuan\b|rmb\b|cny\b|yen\b|[$€£¥元块]|美元|欧元|人民币",
        r"\b(?:cost(?:s|ing)?|priced)",
        r"more\s+expensive|less\s+cheap|dearer|pricier|costlier",
        r"cheaper|less\s+expensive",
    ),
    Kind("rating score star 评分 得分 分数", r"stars?\b|points?\b|[星分](?!钟)", r"\b(?:rated|scored)"),
    Kind(
        "age 年龄",
        r"(?:years?|yrs?)[\s-]+(?:old|of\s+age)\b|周?岁",
        r"\baged",
        r"older",
        r"younger",
    ),
    Kind(
        "weight 重量 体重",
        r"kgs?\b|kilos?\b|kilograms?\b|公斤|千克",
        r"\bweigh(?:s|ing)?",
        "heavier",
        "lighter",
    ),
    Kind("height 身高 高度", more="taller", less="shorter"),
    Kind("length duration runtime 长度 时长", r"分钟", r"\blasting", "longer", "shorter"),
    Kind("size area 面积 大小", r"平方米|平米|平", more="larger|bigger", less="smaller"),
    Kind("speed 速度", more="faster|quicker", less="slower"),
)
_COUNTING = frozenset(
    ["count", "num", "number", "n", "no", "of", "total", "avg", "average", "max", "min", "in", "the"]
)
_MONEY = re.compile(r"[$€£¥]")
_MORE = re.compile(r"\s*(?:or\s+(?:more|fewer|less|higher|lower)\b|\+|-)?\s*", re.IGNORECASE)


def by_unit(
    text: str, begin: int, end: int, fields: Sequence[MetadataField], *, counted: bool = True
) -> tuple[MetadataField, int] | None:
    """The field whose unit stands at a number, and where the unit ends; ``None`` unless one field alone has it.

    Args:
        text: The question.
        begin: First character, a sign such as $ included.
        end: Character after the last.
        fields: The numeric fields.
        counted: Words of a field's name are units too: "20 words" for ``word_count``.

    Example:
        >>> fields = [MetadataField("price", "float"), MetadataField("word_count", "int"), MetadataField("页数", "int")]
        >>> [by_unit(text, 6, 8, fields)[0].name for text in ("under 20 euros", "under 20 words", "不能少于了 20页")]
        ['price', 'word_count', '页数']
    """
    more = _MORE.match(text, end)
    start = more.end() if more else end
    after = text[start : start + 40]
    word = re.match(r"[a-z]+", after, re.IGNORECASE)
    found = []
    for field in fields:
        length = 0
        if counted and word is not None and singular(word.group().lower()) in name_words(field) - _COUNTING:
            length = word.end()
        elif after[:1] > "\u3400" and any(name.startswith(after[:1]) for name in _all_names(field)):
            length = 1  # 30页 is of 页数
        for kind in KINDS:
            if length == 0 and kind.fits(field):
                if unit := re.match(kind.units, after, re.IGNORECASE):
                    length = unit.end()
                elif kind is KINDS[0] and _MONEY.match(text, begin):
                    found.append((field, end))
        if length:
            # the words of "20 or more pages" say how it is compared
            found.append((field, end if more and more.group().strip() else start + length))
    return found[0] if len(found) == 1 else None


def by_word(
    left: str, fields: Sequence[MetadataField]
) -> tuple[MetadataField, Comparator | None, int] | None:
    """The field that the words before a number mean: "cheaper than", "rated", "costs".

    Args:
        left: The text before the number, or before its "more than".
        fields: The numeric fields.

    Returns:
        The field, the comparison if the words say one, and where they begin; ``None`` if they say nothing, or if
        more than one field is of this kind.
    """
    for kind in KINDS:
        owners = [field for field in fields if kind.fits(field)]
        if len(owners) != 1:
            continue
        for words, comparator in (
            (rf"\b(?:{kind.more})\s+than", Comparator.GT),
            (rf"\b(?:{kind.less})\s+than", Comparator.LT),
            (kind.verbs, None),
        ):
            if match := re.search(
                rf"(?:{words})(?:\s+(?:at|a|an|the|with|as|is|are))*\s*$", left, re.IGNORECASE
            ):
                return owners[0], comparator, match.start()
    return None


def name_words(field: MetadataField) -> set[str]:
    """The words of a field's names, in the singular."""
    return {singular(word) for name in _all_names(field) for word in re.split(r"[\W_]+", name) if word}


def _all_names(field: MetadataField) -> list[str]:
    return [name.lower() for name in (field.name, *field.aliases)]
