"""What else a row shows beside its scores; only what stands in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_kit.evaluation.runs import Row

_TEXTS = {
    "failed": ("the pipeline failed: {0}", "流程运行失败：{0}"),
    "nothing": ("no passage was retrieved", "没有召回任何段落"),
    "aside": ("all passages that were retrieved ({0}) were put aside", "召回的 {0} 个段落全部没有采用"),
    "one kept": ("of the passages that were retrieved ({0}) one was kept", "召回的 {0} 个段落中只采用了一个"),
    "one": ("only one passage was retrieved", "只召回了一个段落"),
    "declined": ("the answer declines", "答案表示无法回答"),
    "citations": ("citations that do not hold: {0}", "不成立的引用：{0} 处"),
    "empty": ("the answer is empty", "答案为空"),
}
_HOLD = ("supported", "undecided", "grounded")


def hints_of(row: Row, language: str) -> tuple[str, ...]:
    """What the output says of itself: failed, nothing retrieved, declined, wrong citations."""
    from rag_kit.text.citations import is_declined

    output = row.output
    found: list[tuple[str, object]] = []
    if output.error is not None:
        found.append(("failed", output.error))
    elif output.answer is not None and not output.answer.strip():
        found.append(("empty", ""))
    if output.passages is not None and len(output.passages) < 2 and output.error is None:
        # CRAG hands on what its evaluator keeps, and tells what it had
        retrieved = output.extra.get("retrieved")
        had = len(retrieved) if isinstance(retrieved, (list, tuple)) else 0
        if had > len(output.passages):
            found.append(("one kept" if output.passages else "aside", had))
        else:
            found.append(("one" if output.passages else "nothing", ""))
    if output.status == "declined" or (output.answer and is_declined(output.answer)):
        found.append(("declined", ""))
    wrong = sum(1 for item in output.citations if item.get("status") not in (None, *_HOLD))
    if wrong:
        found.append(("citations", wrong))
    place = 1 if language == "zh" else 0
    return tuple(_TEXTS[key][place].format(value) for key, value in found)


def translated(hint: str, language: str) -> str:
    """A hint in the other language; what is no hint of ours stays.

    Example:
        >>> translated("the pipeline failed: no {room}", "zh")
        '流程运行失败：no {room}'
    """
    for both in _TEXTS.values():
        wanted, given = (both[1], both[0]) if language == "zh" else both
        before, place, after = given.partition("{0}")
        pattern = re.escape(before) + ("(.*)" if place else "") + re.escape(after)
        if found := re.fullmatch(pattern, hint, re.DOTALL):
            return wanted.format(*found.groups())
    return hint
