"""The sentence that says an answer is not in the documents, and how others put it."""

from __future__ import annotations

import re

from rag_kit.text.fold import fold

DECLINED = {"en": "The answer is not in the documents.", "zh": "文档中没有答案。"}
"""The decline sentence that the prompts ask for, by language."""

_MAX = 300
_SOURCE = (
    r"(?:document|passage|context|source|text|material|excerpt|information provided|provided information)"
)
_EN = re.compile(
    rf"\b(?:(?:is|are|was|were) not|isn't|aren't|cannot be|can't be|could not be|couldn't be|not)\b"
    rf"[^.!?]{{0,60}}?\b(?:in|by|from|within)\b[^.!?]{{0,30}}?\b{_SOURCE}"
    rf"|\b{_SOURCE}s?\b[^.!?]{{0,40}}?\b(?:do|does|did|don't|doesn't|didn't)\b[^.!?]{{0,12}}?"
    rf"\b(?:contain|include|mention|provide|hold|say|answer|state|specify|address)"
    rf"|\b(?:cannot|can't|could not|couldn't|unable to)\b[^.!?]{{0,12}}?\b(?:answer|find)\b"
    rf"[^.!?]{{0,60}}?\b(?:{_SOURCE}|question)"
)
_NEGATED = re.compile(r"\bnot\b|n't\b|\bcannot\b|\bunable\b")
_ZH = re.compile(
    r"(?:文档|文件|资料|段落|材料|上下文|原文|文中|文本)[^。！？]{0,12}?(?:没有|未|并未|不包含|不含|无)[^。！？]{0,12}?"
    r"(?:答案|回答|信息|内容|提及|提到|说明|找到|涉及)?"
    r"|(?:无法|不能|没法)[^。！？]{0,16}?(?:回答|找到|得知|确定)|(?:没有|未能?)找到[^。！？]{0,16}?(?:答案|信息|内容)"
)
_OPENING_ZH = re.compile(
    r"^(?:抱歉|对不起|很遗憾)[，,。!！]?|^(?:根据|从|在)?(?:提供的|给定的|上述|这些|以上)?"
)
_MARK = re.compile(r"[\[［【]\s*\d[^\]］】]{0,40}[\]］】]")
_SENTENCE = re.compile(r"[.!?。！？]\s*(?=\S)")


def is_declined(answer: str) -> bool:
    """Whether an answer says that the documents do not hold it, and nothing else.

    Args:
        answer: The whole answer; longer than 300 characters, or with a citation, it is no plain decline.

    Example:
        >>> is_declined("The answer is not in the documents."), is_declined("文档中没有答案。")
        (True, True)
        >>> is_declined("Paris is the capital.[1]")
        False
    """
    if not answer.strip() or len(answer) > _MAX or _MARK.search(answer):
        return False
    text = fold(answer).strip().strip("*_`\"'“”「」 ").strip()
    declared = {fold(sentence).rstrip("。. ") for sentence in DECLINED.values()}
    if text.rstrip("。.!！ ") in declared:
        return True
    first = _SENTENCE.split(text, maxsplit=1)[0]
    if _EN.search(first):
        return _NEGATED.search(first) is not None
    bare = _OPENING_ZH.sub("", first)
    found = _ZH.search(bare)
    return found is not None and found.start() <= 12
