"""Words that turn a statement round: negations, opposites, and other members of a class such as another colour."""

from __future__ import annotations

import re
from functools import cache

from rag_kit.text.analysis import content_words

_NEGATIONS = frozenset(
    ["not", "no", "never", "neither", "nor", "none", "cannot", "without", "nobody", "nothing", "hardly"]
)
# A negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线.
_ZH_NEGATION = re.compile("[并从绝也都尚]?[不没未无非勿莫][有能会是可要应得曾用须需人许准]?")
# The words of a line exclude one another.
_CLASSES = """
red blue green yellow black white brown grey gray orange purple pink violet silver gold
north south east west
northern southern eastern western
first second third fourth fifth sixth seventh eighth ninth tenth last
spring summer autumn winter
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
increase decrease
rise fall
rose fell
more less fewer
before after
largest smallest
biggest smallest
highest lowest
higher lower
high low
large small
win lose
won lost
allow forbid prohibit
true false
always never
start end
begin end
began ended
include exclude
above below
up down
left right
oldest youngest
male female
positive negative
success failure
accept reject
best worst
better worse
early late
longest shortest
most least
maximum minimum
enable disable
required optional
public private
minor major
strong weak
inside outside
import export
buy sell
bought sold
open close
possible impossible
红色 蓝色 绿色 黄色 黑色 白色 棕色 灰色 橙色 紫色 粉色
红光 蓝光 绿光 黄光
北部 南部 东部 西部
以东 以南 以西 以北
东 南 西 北
红 蓝 绿 黄 黑 白
甲方 乙方 丙方
春季 夏季 秋季 冬季
春天 夏天 秋天 冬天
周一 周二 周三 周四 周五 周六 周日
雄 雌
男 女
增加 减少
上升 下降
提高 降低
最大 最小
最多 最少
最高 最低
最长 最短
以前 以后
之前 之后
成功 失败
允许 禁止
开始 结束
支持 反对
"""


@cache
def _classes() -> dict[str, frozenset[int]]:
    """Word -> the lines that it stands in, in its stemmed form and as it is."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_CLASSES.strip().splitlines()):
        for word in line.split():
            for form in {word, *content_words(word)}:
                found.setdefault(form, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def is_negation(key: str) -> bool:
    """Whether a token negates.

    Example:
        >>> is_negation("not"), is_negation("didn't"), is_negation("并未"), is_negation("note"), is_negation("不同")
        (True, True, True, False, False)
    """
    if key in _NEGATIONS or key.endswith("n't"):
        return True
    return _ZH_NEGATION.fullmatch(key) is not None


def opposites(a: str, b: str) -> bool:
    """Whether two words exclude one another: opposites, two colours, two months.

    Example:
        >>> opposites("increased", "decreased"), opposites("red", "blue"), opposites("red", "bridge")
        (True, True, False)
    """
    known = _classes()
    if a not in known:
        a = (content_words(a) or [a])[0]
    if b not in known:
        b = (content_words(b) or [b])[0]
    return a != b and bool(known.get(a, frozenset()) & known.get(b, frozenset()))
