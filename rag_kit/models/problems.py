"""Why an answer does not fit, in the language of the prompt that asks the model to mend it."""

from __future__ import annotations

import re
from collections.abc import Callable

# What the checks of this kit, Pydantic and jsonschema say -> the same in Chinese; each is matched as a whole.
_ZH = (
    (r"Field required", r"缺少这个必填字段"),
    (r"(.+) is a required property", r"缺少字段：\1"),
    (r"Extra inputs are not permitted|Additional properties are not allowed.*", r"模式中没有这样的字段"),
    (r"allowed: (.+)", r"允许的有：\1"),
    (r"expected an object with (.+), not (\w+)", r"应为含有 \1 的对象，而不是 \2"),
    (r"Input should be a valid (?:string|text).*", r"应为字符串"),
    (r"Input should be a valid integer.*", r"应为整数"),
    (r"Input should be a valid (?:number|decimal).*", r"应为数字"),
    (r"Input should be a valid boolean.*", r"应为 true 或 false"),
    (r"Input should be a valid (?:list|array|tuple).*", r"应为列表"),
    (r"Input should be (?:a valid (?:dictionary|mapping|dict)|an object).*", r"应为对象"),
    (r"Input should be (['\"].+)", r"只能是 \1 之一"),
    (r"must be one of (\[.*\]), not (.+)", r"只能是 \1 之一，不能是 \2"),
    (r"(.+) is not one of (\[.*\])", r"只能是 \2 之一，不能是 \1"),
    (r"must be a list of numbers", r"应为数字列表"),
    (r"must be a list of (?:texts|keywords)", r"应为字符串列表"),
    (r"must be a list.*", r"应为列表"),
    (r"must be (['\"\d].*)|(.+) was expected", r"必须是 \1\2"),
    (r"must not be empty|.+ should be non-empty", r"不能为空"),
    (r"must hold a keyword", r"至少要有一个关键词"),
    (r"String should have at least 1 character", r"不能为空"),
    (r"String should have at most (\d+) characters", r"最多允许 \1 个字符"),
    (
        r"List should have at least (\d+) items? after validation, not (\d+)",
        r"至少要有 \1 项，给出的是 \2 项",
    ),
    (r"List should have at most (\d+) items? after validation, not (\d+)", r"最多允许 \1 项，给出的是 \2 项"),
    (r"has (\d+) entries", r"有 \1 项"),
    (r"at most (\d+) are allowed", r"最多允许 \1"),
    (r"(\d+) to (\d+) are allowed", r"允许 \1 到 \2"),
    (r"is (.+)", r"给出的是 \1"),
    (r"a whole number from (\d+) to (\d+) is allowed", r"应为 \1 到 \2 的整数"),
    (r"a number from (\d+) to (\d+) is allowed", r"应为 \1 到 \2 的数字"),
    (r"(.+) is not of type (.+)", r"类型应为 \2，而不是 \1"),
    (r"(\S+) is (?:less|greater) than .*the (minimum|maximum) of (\S+)", r"\1 不满足 \2 \3"),
    (r".+ is too (?:short|long)", r"长度不符合要求"),
    (r"(.+) does not match (.+)", r"\1 与 \2 不匹配"),
    (r"the answer is empty", r"回复是空的"),
    (r"the JSON breaks off before its end", r"JSON 没有写完就中断了"),
    (r"there is no JSON object in it", r"其中没有 JSON 对象"),
)
_MOST = 400
_OTHER = "不符合模式的要求"
_RULES = tuple((re.compile(pattern, re.DOTALL), words) for pattern, words in _ZH)
_PLACE = re.compile(r"([\w.\[\]-]+): (.*)", re.DOTALL)


def problem_in(language: str) -> Callable[[str], str]:
    """How problems are worded in a language.

    Args:
        language: ``"en"`` or ``"zh"``.

    Returns:
        A function from the problem as people read it to what the model reads. What it does not know is worded
        in general words, with its place: a Chinese prompt never carries an English sentence of ours.

    Example:
        >>> problem_in("zh")("score: Field required; reason: must not be empty")
        'score：缺少这个必填字段；reason：不能为空'
        >>> problem_in("en")("score: Field required")
        'score: Field required'
    """
    return _in_chinese if language == "zh" else str


def _in_chinese(problem: str) -> str:
    return "；".join(dict.fromkeys(map(_part, problem.split("; "))))


def _part(part: str) -> str:
    part = part.removeprefix("Value error, ")
    for rule, words in _RULES:
        if found := rule.fullmatch(part):
            text = re.sub(r" or (?=['\"\d])", " 或 ", found.expand(words).replace(", ", "、"))
            # a model that wrote ten thousand entries need not read them again
            return text if len(text) <= _MOST else f"{text[: _MOST // 2]}…{text[-_MOST // 4 :]}"
    if placed := _PLACE.fullmatch(part):
        return f"{placed[1]}：{_part(placed[2])}"
    return _OTHER
