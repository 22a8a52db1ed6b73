"""A model's text -> a validated value: JSON first, then tags, then a list of lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from rag_kit.prompts.rendering import unescape_tags

from .json_text import MAX_TEXT, is_truncated, json_values, read_value
from .replies import THOUGHT, refusal_of, split_reply, text_of, without_thinking, written_text
from .schema import NOTHING, Target, UnreadableError

_MAX_PLAIN = 1000  # characters of a string without JSON around it
_MAX_SCALAR = 20  # of a number or boolean
_REFUSAL = re.compile(
    r"""^(?:
        (?:(?:i['’]?m|i[ ]am)[ ](?:(?:very|really|so)[ ])?)?sorry\b
        | i[ ](?:can(?:no|['’])t|am[ ](?:not[ ]able|unable)|won['’]t)
        | as[ ]an[ ]ai\b | unfortunately,?[ ]i
        | 很?抱歉 | 对不起 | 我(?:无法|不能|没办法) | 作为(?:一个|一名)?(?:ai|人工智能)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# the beginning of a line that says nothing about the task: "Sure!", "Here are the queries:"
_CHATTER = re.compile(
    r"""^(?:
        sure | certainly | of[ ]course | okay | ok | great | absolutely | as[ ]requested
        | here[ ](?:is|are) | here['’]s | below | the[ ]following | let[ ]me | let['’]s | i\b | i['’]
        | 好的 | 当然 | 以下 | 下面 | 没问题 | 可以
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# the mark before an entry of a list
_MARK = re.compile(
    r"""^\s*(?:
        [-*•·‣▪–—]\s+
        | [（(]?\d{1,2}[.)）](?=\D)                  # "2. ", "(2)", but not "2.5"
        | \d{1,2}\s*(?:[、．]|[:：](?!\d\d(?!\d)))  # "2: ", but not "10:30"
        | [①-⑳]
        | [一二三四五六七八九十]{1,2}[、.．]
        | [（(][一二三四五六七八九十]{1,2}[)）]
        | (?:Q|query|question|version|alternative|passage|查询|问题|版本|段落)
          \s*\d{1,2}\s*[.:：)](?!\d{1,2}(?!\d))     # "Query 2: "
    )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
# the label of an answer: "Rewritten query: ", "The step-back question is: ", 改写后的问题：
_LABEL = re.compile(
    r"""^\s*(?:
        (?:the\s+)?(?:(?:rewritten|standalone|search|final|new|revised|alternative|step-?back|more|general)\s+)*
        (?:query|question|answer|output|passage)(?:\s+is)?
        | (?:改写后的|独立的|检索|搜索|更一般的)?(?:查询|问题|答案|检索词|段落)[是为]?
    )\s*[:：]\s*""",
    re.IGNORECASE | re.VERBOSE,
)
# RankGPT's form of an order of passages: "[2] > [1] > [3]", or "2 > 1 > 3" and "2, 1, 3" as the whole text.
_CHAIN = re.compile(r"\[\d{1,4}\](?:\s*[>＞]\s*\[\d{1,4}\])+|^\s*\d{1,4}(?:\s*[>＞,，、]\s*\d{1,4})+\s*$")
# one number in brackets on each line, as an order: "1. [3]"
_RANKED_LINE = re.compile(r"^[ \t]*(?:\d{1,4}[.)][ \t]*)?\[(\d{1,4})\][ \t\r]*$", re.MULTILINE)
# marks before and after a text
_AROUND = (("**", "**"), ("__", "__"), *zip("\"*“'`「《", "\"*”'`」》", strict=True))


def parse_text(text: str, target: Target, *, lines: bool = True) -> Any:
    """Find the value that a model meant to give, as ``target.accept`` returns it; raise the first problem if none fits.

    With ``lines`` unmarked lines are values too: one entry a line, or one line as the only string. It is off for a
    model that was bound to JSON, whose prose means that it did not do the task.

    Example:
        >>> from rag_kit.prompts.schemas import Queries
        >>> parse_text("Here you are:\\n1. cats\\n2. dogs", Target(Queries)).queries
        ['cats', 'dogs']
    """
    text = text[:MAX_TEXT]
    if text.lstrip().startswith(('"{', '"[')):
        with suppress(ValueError, RecursionError):
            unquoted = json.loads(text)
            json.loads(unquoted)  # else it is no JSON written as a JSON string, but a text such as "{name}"
            text = unquoted
    body = _without_thoughts(text.strip())
    if not body:  # some servers put the answer itself behind an opening tag that is never closed
        raise UnreadableError("the answer is empty")
    try:
        return target.accept_first(_candidate_values(body, target))
    except UnreadableError as error:
        problem = error
    if _REFUSAL.match(body):
        raise UnreadableError("the model declined to answer", "refused")
    if is_truncated(body):
        raise UnreadableError("the JSON breaks off before its end", "truncated")
    is_prose = str(problem) == NOTHING and not body.lstrip("`\n ").startswith(("{", "[", "｛", "json"))
    name = target.only_field
    if is_prose and name is not None and (plain := _read_plain_value(body, target, name, lines)):
        return target.accept({name: plain})
    raise problem


def _without_thoughts(text: str) -> str:
    """Remove reasoning blocks; tags such as ``<think>`` inside the strings of JSON are no reasoning."""
    body = without_thinking(text)
    if body == text:
        return body
    if THOUGHT.match(text):
        text = THOUGHT.sub("", text, count=1).strip()
    with suppress(ValueError, RecursionError):
        _, json_end = read_value(text, 0)
        return without_thinking(text, json_end)
    return body


def _candidate_values(body: str, target: Target) -> Iterator[Any]:
    """Yield the values that a text may hold, the likeliest first: a ranking, JSON, tags."""
    name = target.only_field
    takes_ranking = name is not None and target.fields[name].get("items", {}).get("type") == "integer"
    # as JSON, "[2] > [1] > [3]" would be three lists of one
    if takes_ranking and "{" not in body:
        rankings, ranked_lines = _CHAIN.findall(body), _RANKED_LINE.findall(body)
        if rankings:  # the last one counts: a model weighs others before it
            yield {name: list(map(int, re.findall(r"\d+", rankings[-1])))}
        elif len(ranked_lines) > 1:
            yield {name: list(map(int, ranked_lines))}
    if body[:1] in ("{", "["):  # most replies are JSON and nothing else
        with suppress(ValueError, RecursionError):
            yield json.loads(body)
    yield from json_values(body)
    if tagged := _read_tags(body, target):
        yield tagged


def read_reply(reply: Any, target: Target, *, lines: bool = False) -> Any:
    """Read the value of a model's reply: from tool calls for it, else from the text, else as its client parsed it."""
    message, parsed = split_reply(reply)
    if refusal := refusal_of(message):
        raise UnreadableError(f"the model refused: {refusal}", "refused")
    calls = getattr(message, "tool_calls", None)
    arguments = [call["args"] for call in calls or () if call["name"] == target.name]
    if arguments:
        return target.accept_first(arguments)
    text = text_of(message) if calls else written_text(reply)
    if calls and not text.strip():
        raise UnreadableError(f"the model called a tool that is not there: {calls[0]['name']!r:.60}")
    if text:
        return parse_text(text, target, lines=lines)
    # The parsed value comes last: LangChain's parser closes a truncated answer and says nothing of what is missing.
    if isinstance(parsed, BaseModel | dict):
        return target.accept(parsed)
    raise UnreadableError("the answer is empty")


def _read_tags(text: str, target: Target) -> dict[str, Any]:
    """Read fields written as tags: ``<query>...</query>``; {} if a required one is missing.

    A list is the lines under its own tag (``queries``), or several tags in the singular (``query``).
    """
    fields: dict[str, Any] = {}
    for name in target.fields:
        contents = _tag_contents(text, name)
        if target.kinds[name] == "strings":
            singular = name[:-3] + "y" if name.endswith("ies") else name.removesuffix("s")  # queries -> query
            items = _tag_contents(text, singular) if singular != name else []
            lines = "\n".join(contents)
            items = items or _marked_lines(lines) or [line for line in lines.splitlines() if line]
            if items:
                fields[name] = items
        elif contents:
            fields[name] = contents[-1]
    return fields if all(name in fields for name in target.required) else {}


def _tag_contents(text: str, tag: str) -> list[str]:
    """Return the text of each element with this tag name."""
    parts: list[str] = []
    start: int | None = None
    for mark in re.finditer(rf"<(/?){re.escape(tag)}(?:\s[^<>]*)?>", text, re.IGNORECASE):
        if mark[1] != "/":  # an opening tag
            start = mark.end()
        elif start is not None:
            parts.append(unescape_tags(text[start : mark.start()].strip()))
            start = None
    return parts


def _read_plain_value(text: str, target: Target, name: str, takes_unmarked: bool) -> Any:
    """Read the value of the only field out of plain text, by the field's kind; None or [] if the text holds none."""
    kind = target.kinds[name]
    if kind == "strings":
        items = _marked_lines(text)
        if items or not takes_unmarked:
            return items
        items = _unmarked_lines(text)
        passage = _without_preamble(text, is_passage=True)
        if not items and name == "passages" and not _CHATTER.match(passage):
            return [passage]  # asked for a passage, many models just write it
        return items
    if kind in ("boolean", "number", "integer") and len(text) <= _MAX_SCALAR:
        return text
    if kind == "string" and (takes_unmarked or _LABEL.match(text)):
        value = _strip_quotes(_without_preamble(text))
        if "\n" not in value and len(value) <= _MAX_PLAIN and not _CHATTER.match(value):
            return value
    return None


def _marked_lines(text: str) -> list[str]:
    """Return numbered or bulleted lines, without their marks."""
    items = [_strip_quotes(line[mark.end() :]) for line in text.splitlines() if (mark := _MARK.match(line))]
    return [item for item in items if item]


def _unmarked_lines(text: str) -> list[str]:
    """Return the lines of a list without marks, [] if there are fewer than two.

    A preamble is left out, and remarks that follow the list after a blank line.
    """
    block: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if not line and len(block) > 1:  # after one line alone a blank may lie between the entries
            break
        if line and (block or not _is_preamble(line)):
            block.append(_strip_quotes(_LABEL.sub("", line.rstrip(",，;；"), count=1)))
    # A single unmarked line may as well be a remark; only several are a list.
    return [line for line in block if line] if len(block) > 1 else []


def _without_preamble(text: str, *, is_passage: bool = False) -> str:
    """Leave out a first line that only introduces the answer ("Here it is:"), and a label ("Answer: ")."""
    text = text.strip()
    first_line, _, rest = text.partition("\n")
    has_preamble = _is_preamble(first_line)
    if is_passage:  # which may begin with "To reset it:" or "Here are the steps."
        has_end_mark = first_line.rstrip("* \r").endswith((":", "：", "!", "！"))
        has_preamble = bool(_CHATTER.match(first_line)) and has_end_mark and has_preamble
    answer = rest.strip() if rest and has_preamble else text
    return _LABEL.sub("", answer, count=1)


def _is_preamble(line: str) -> bool:
    """Tell whether a line only introduces an answer: "Here are the queries:"."""
    return line.rstrip("*").endswith((":", "：")) or bool(_CHATTER.match(line.strip()))


def _strip_quotes(text: str) -> str:
    """Remove the quotation marks or bold marks around a text."""
    text = text.strip()
    for opening, closing in _AROUND:
        inner = text[len(opening) : -len(closing)]
        is_one_pair = closing not in inner  # not '"a" and "b"'
        if inner and is_one_pair and text.startswith(opening) and text.endswith(closing):
            text = inner.strip()
    return text
