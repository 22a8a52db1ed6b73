"""The two questions behind several metrics: what does a text state, and is each statement supported?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.judge.rendering import render_statements
from rag_kit.text import fold

_NOT_WORD = re.compile(r"[\W_]+")


def statements_call(question: str, answer: str) -> Call:
    """Take an answer apart."""
    return Call("judge_statements", {"question": question, "answer": answer})


def verdicts_call(context: str, statements: Sequence[str]) -> Call:
    """Judge each statement by a text.

    A judge that leaves statements out is asked for those alone; if it still does, there is no value: Ragas would divide
    by the verdicts that it got. A text that is empty supports nothing, and nobody is asked.
    """
    wanted = list(statements)
    known = None
    if not context.strip():
        known = {"statements": [{"statement": text, "reason": "", "verdict": 0} for text in wanted]}

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        given = list(reply["statements"])
        if len(given) == len(wanted):
            return {"statements": [_entry(each, each["statement"]) for each in given]}
        found, missing = matched(wanted, given)
        if missing:
            values = {"context": context, "statements": render_statements(missing)}
            again = await calls.judge.ask(
                "judge_verdicts", values, language=calls.language, keep=_keeps(missing)
            )
            more, left = matched(missing, list(again["statements"]))
            if left:
                raise ModelOutputError(
                    f"the judge gave {len(given)} verdicts for {len(wanted)} statements, and none for {len(left)} of "
                    f"them when it was asked again, such as {left[0]!r:.120}"
                )
            found += more
        return {"statements": found}

    return Call(
        "judge_verdicts", {"context": context, "statements": render_statements(wanted)},
        finish=finish, keep=_keeps(wanted), known=known,
    )  # fmt: skip


def matched(
    wanted: Sequence[str], given: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Verdicts by the statement that they repeat, and the statements that have none.

    Case, spaces and punctuation do not matter; a verdict on something that was not asked counts for nothing.

    Example:
        >>> matched(["A.", "B."], [{"statement": "b", "verdict": 1}])
        ([{'statement': 'B.', 'reason': '', 'verdict': 1}], ['A.'])
    """
    left: dict[str, list[Mapping[str, Any]]] = {}
    for each in given:
        left.setdefault(plain(each["statement"]), []).append(each)
    found, missing = [], []
    for text in wanted:
        verdicts = left.get(plain(text))
        if verdicts:
            found.append(_entry(verdicts.pop(0), text))
        else:
            missing.append(text)
    return found, missing


def _keeps(wanted: Sequence[str]) -> Any:
    return lambda reply: len(reply["statements"]) == len(wanted)


def _entry(each: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"statement": text, "reason": str(each.get("reason") or ""), "verdict": each["verdict"]}


def plain(text: str) -> str:
    """A statement for comparing: without case, spaces and punctuation."""
    return _NOT_WORD.sub("", fold(text)) or text
