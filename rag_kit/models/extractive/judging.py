"""The tasks of a judge of answers: statements, their support, guessed questions; by words alone.

What a text states is its sentences; a statement is supported where :mod:`rag_kit.text.citations` finds a quote for it,
or where the text holds its names, numbers and most of its words (:mod:`rag_kit.models.extractive.holding`). It sees
neither paraphrases nor conclusions. How far it can be trusted is measured in docs/benchmarks.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_kit.models.extractive.blocks import MAX_PASSAGE_CHARS, Prompt
from rag_kit.models.extractive.holding import Text
from rag_kit.models.extractive.tasks import Reply
from rag_kit.prompts import unescape_tags
from rag_kit.text import detect_language
from rag_kit.text.citations import is_declined
from rag_kit.text.citations.statements import statements

MAX_STATEMENTS = 100
"""Statements of one text that are looked at, so that time is bounded."""

_ASKS = re.compile(r"[?？][\s\"'”’」』)）]*$")
_GREETS = re.compile(
    r"^(?:hello|hi|hey|good (?:morning|afternoon|evening)|thanks?(?: you)?|you are welcome|sure|of course|sorry)\b"
    r"[^.!?。！？]{0,40}[.!。！]?$|^(?:你好|您好|谢谢|不客气|好的|当然|抱歉|对不起)[^。！？]{0,12}[。！]?$",
    re.IGNORECASE,
)
_EVADES = re.compile(
    r"\b(?:i|we) (?:do not|don't|cannot|can't|am not|are not|'m not)\b[^.!?]{0,20}?"
    r"\b(?:know|sure|certain|tell|say|answer|aware)\b|\bit depends\b|\b(?:hard|difficult) to say\b"
    r"|不知道|不清楚|不确定|说不准|不好说|视情况|看情况|无法(?:回答|确定|判断)|难以(?:回答|确定|判断)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[;；]\s*|,\s+(?:and|but|while)\s+|[，,]\s*(?=(?:并且|而且|同时|但是?|此外))")
_ITEM = re.compile(r"<statement id=\"\d{1,6}\">(.*?)</statement>", re.DOTALL)

_SAID = {
    "en": {
        True: "The text says: “{}”",
        False: "No sentence of the text says so.",
        "useful": "It holds: “{}”",
        "beside": "It holds no statement of the answer.",
        "same": "The other answer says: “{}”",
        "other": "The other answer does not say so.",
        "ask": "Is it true that {}?",
    },
    "zh": {
        True: "文本写道：“{}”",
        False: "文本中没有一句这样说。",
        "useful": "其中写道：“{}”",
        "beside": "其中没有回答的任何论断。",
        "same": "另一方写道：“{}”",
        "other": "另一方没有这样说。",
        "ask": "{}，是这样吗？",
    },
}
_MAX_QUOTE = 160


def judge_statements(prompt: Prompt) -> Reply:
    """The sentences of an answer that state something.

    Example:
        >>> body = "<question>Who wrote Emma?</question><answer>Hello! Jane Austen wrote Emma [1].</answer>"
        >>> dict(judge_statements(Prompt("judge_statements", "", "", (), (), None, "", body)).fields)
        {'statements': ['Jane Austen wrote Emma.']}
    """
    return _listed("statements", stated(prompt.block("answer")))


def judge_claims(prompt: Prompt) -> Reply:
    """The same under another name; finer where atomicity is high: cut at semicolons and before "and"."""
    found = stated(prompt.block("text"))
    if prompt.block("atomicity") == "high":
        found = [part.strip() for one in found for part in _PARTS.split(one) if part and part.strip()]
    return _listed("claims", found[:MAX_STATEMENTS])


def judge_verdicts(prompt: Prompt) -> Reply:
    """Whether the context supports each statement."""
    found = [
        {"statement": one, "reason": reason, "verdict": int(good)}
        for one, good, reason in _held(_items(prompt, "statements"), [prompt.block("context")])
    ]
    return Reply(f"{len(found)} judged", {"statements": found}, as_json=True)


def judge_recall(prompt: Prompt) -> Reply:
    """Whether the context holds each statement of the reference answer."""
    answer = prompt.block("answer")
    found = [
        {"statement": one, "reason": reason, "attributed": int(good)}
        for one, good, reason in _held(stated(answer) or [answer[:2000]], [prompt.block("context")])
    ]
    return Reply(f"{len(found)} judged", {"classifications": found}, as_json=True)


def judge_context(prompt: Prompt) -> Reply:
    """Whether the passage supports at least one statement of the answer."""
    answer = prompt.block("answer")
    said = _SAID[detect_language(answer)]
    found = _held(stated(answer) or [answer[:2000]], [prompt.block("context")])
    quote = next((reason for _, good, reason in found if good), "")
    fields = {"reason": quote or said["beside"], "verdict": int(bool(quote))}
    return Reply(str(fields["reason"]), fields, as_json=True)


def judge_question(prompt: Prompt) -> Reply:
    """The first statement put as a question: all that words alone give; and whether the answer evades."""
    answer = prompt.block("answer").strip()
    found = stated(answer)
    evades = not found or is_declined(answer) or _EVADES.search(found[0]) is not None
    first = (found or [answer or "?"])[0][:2000].rstrip(" .。!！?？")
    language = detect_language(first)
    fields = {"question": _SAID[language]["ask"].format(first), "noncommittal": int(evades)}
    return Reply(str(fields["question"]), fields, as_json=True)


def judge_correctness(prompt: Prompt) -> Reply:
    """Statements of the answer by whether the reference holds them; those of the reference that the answer lacks."""
    mine, gold = _items(prompt, "statements"), _items(prompt, "reference_statements")
    fields: dict[str, list[dict[str, str]]] = {"TP": [], "FP": [], "FN": []}
    for one, good, reason in _held(mine, ["\n".join(gold)], "same", "other"):
        fields["TP" if good else "FP"].append({"statement": one, "reason": reason})
    for one, good, reason in _held(gold, ["\n".join(mine)], "same", "other"):
        if not good:
            fields["FN"].append({"statement": one, "reason": reason})
    return Reply(", ".join(f"{len(each)} {name}" for name, each in fields.items()), fields, as_json=True)


def stated(text: str) -> list[str]:
    """What a text states: its sentences without marks, questions, greetings and declines.

    Example:
        >>> stated("Basel lies on the Rhine.[1] Does it? The documents do not say more.")
        ['Basel lies on the Rhine.']
        >>> stated("你好！巴塞尔位于莱茵河畔[2]。")
        ['巴塞尔位于莱茵河畔。']
    """
    found = (one.text.strip() for one in statements(text[:MAX_PASSAGE_CHARS]))
    kept = [
        one for one in found if one and not (_ASKS.search(one) or _GREETS.search(one) or is_declined(one))
    ]
    return kept[:MAX_STATEMENTS]


def _held(
    wanted: Sequence[str], texts: Sequence[str], yes: str | bool = True, no: str | bool = False
) -> list[tuple[str, bool, str]]:
    """Each statement, whether one of the texts supports it, and why."""
    read = [Text(text[:MAX_PASSAGE_CHARS]) for text in texts]
    found = []
    for one in wanted:
        said = _SAID[detect_language(one)]
        verdicts = ((text.verdict(one), text) for text in read)
        good = next(((verdict, text) for verdict, text in verdicts if verdict.status == "supported"), None)
        quote = " ".join(good[1].text[good[0].start : good[0].end].split())[:_MAX_QUOTE] if good else ""
        found.append((one, good is not None, said[yes].format(quote) if good else said[no]))
    return found


def _items(prompt: Prompt, block: str) -> list[str]:
    return list(_statement_tags(prompt.body, block))[:MAX_STATEMENTS]


def _statement_tags(body: str, block: str) -> Iterator[str]:
    """The statements of a list; read before anything is unescaped, so that none can hold another."""
    start = body.find(f"<{block}>")
    end = body.find(f"</{block}>", start)
    if start >= 0 and end >= 0:
        for match in _ITEM.finditer(body, start, end):
            yield unescape_tags(match[1]).strip()


def _listed(field: str, found: list[str]) -> Reply:
    return Reply("\n".join(found), {field: found}, as_json=True)
