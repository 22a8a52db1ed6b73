"""Words that turn a statement round: negations, opposites, and other members of a class such as another colour."""

from __future__ import annotations

import re
from functools import cache

from rag_kit.text.analysis import content_words

_NEGATIONS = (
    "not",
    "no",
    "never",
    "neither",
    "nor",
    "none",
    "cannot",
    "without",
    "nobody",
    "nothing",
    "hardly",
)
# A negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线.
_ZH_NEGATION = re.compile("[并从绝也都尚]?[不没未无非勿莫][有能会是可要应得曾用须需人许准]?")
# The words of a class exclude one another.
_CLASSES = (
    "red/blue/green/yellow/black/white/brown/grey/gray/orange/purple/pink north/south/east/west "
    "northern/southern/eastern/western first/second/third/fourth/fifth/sixth/seventh/last spring/summer/autumn/winter "
    "january/february/march/april/may/june/july/august/september/october/november/december "
    "monday/tuesday/wednesday/thursday/friday/saturday/sunday increase/decrease rise/fall rose/fell more/less/fewer "
    "before/after largest/smallest biggest/smallest highest/lowest higher/lower high/low large/small win/lose won/lost "
    "allow/forbid/prohibit true/false always/never start/end begin/end include/exclude above/below up/down left/right "
    "oldest/youngest male/female positive/negative success/failure accept/reject best/worst better/worse early/late "
    "longest/shortest most/least maximum/minimum enable/disable required/optional public/private minor/major "
    "strong/weak inside/outside import/export buy/sell bought/sold open/close "
    "红色/蓝色/绿色/黄色/黑色/白色 红/蓝/绿/黄/黑/白 北部/南部/东部/西部 东/南/西/北 甲方/乙方 "
    "春季/夏季/秋季/冬季 男/女 增加/减少 上升/下降 提高/降低 最大/最小 最多/最少 最高/最低 最长/最短 "
    "以前/以后 之前/之后 成功/失败 允许/禁止 开始/结束 支持/反对"
)


@cache
def _classes() -> dict[str, frozenset[int]]:
    """Word -> the classes that it is in, in its stemmed form and as it is."""
    classes: dict[str, frozenset[int]] = {}
    for number, members in enumerate(_CLASSES.split()):
        for word in members.split("/"):
            for form in {word, *content_words(word)}:
                classes[form] = classes.get(form, frozenset()) | {number}
    return classes


def is_negation(key: str) -> bool:
    """Whether a token negates.

    Example:
        >>> is_negation("not"), is_negation("didn't"), is_negation("并未"), is_negation("note"), is_negation("不同")
        (True, True, True, False, False)
    """
    return key in _NEGATIONS or key.endswith("n't") or _ZH_NEGATION.fullmatch(key) is not None


def opposites(a: str, b: str) -> bool:
    """Whether two words exclude one another: opposites, two colours, two months.

    Example:
        >>> opposites("increased", "decreased"), opposites("red", "blue"), opposites("red", "bridge")
        (True, True, False)
    """
    classes = _classes()
    first, second = (word if word in classes else (content_words(word) or [word])[0] for word in (a, b))
    return first != second and not classes.get(first, frozenset()).isdisjoint(classes.get(second, ()))
