"""What else a row shows beside its scores; only what stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_kit.evaluation.runs import Row

_TEXTS = {
    "failed": ("the pipeline failed: {0}", "流程运行失败：{0}"),
    "nothing": ("no passage was retrieved", "没有召回任何段落"),
    "one": ("only one passage was retrieved", "只召回了一个段落"),
    "declined": ("the answer declines", "答案表示无法回答"),
    "citations": ("citations that do not hold: {0}", "不成立的引用：{0} 处"),
    "empty": ("the answer is empty", "答案为空"),
}
_HOLD = ("supported", "grounded")


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
        found.append(("one" if output.passages else "nothing", ""))
    if output.status == "declined" or (output.answer and is_declined(output.answer)):
        found.append(("declined", ""))
    wrong = sum(1 for item in output.citations if item.get("status") not in (None, *_HOLD))
    if wrong:
        found.append(("citations", wrong))
    place = 1 if language == "zh" else 0
    return tuple(_TEXTS[key][place].format(value) for key, value in found)
