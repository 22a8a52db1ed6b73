"""Questions by rule, each answered by its sentence: when something was made, or what belongs in a gap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag_kit.models.extractive.answering import extract_answer
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text import detect_language, sentences
from rag_kit.text.evidence.questions import terms
from rag_kit.text.evidence.sentences import PassageText
from rag_kit.text.values.reading import find_values

_MAX_ANSWER = 4_000
_MAX_SENTENCES = 60
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:(?:\d{{1,2}} )?{_MONTH}(?: \d{{1,2}},)? )?[12]\d{{3}}"
_WHEN = re.compile(
    r"^(?P<what>(?:(?:The|An?) )?[A-Z][\w'’-]*(?: [\w'’-]+){0,5}?) (?P<be>was|were) (?P<verb>\w+ed|built|made|born"
    rf"|founded|written|won|held|begun|sent|sold|set up) (?:in|on) (?P<a>{_DATE})\b"
)
_DATE_ZH = r"(?:(?:公元前?)?\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|\d{1,2}世纪)"
_WHEN_ZH = re.compile(
    r"^(?P<what>[\u3400-\u9fffA-Za-z0-9·《》“”]{2,16}?)(?P<verb>始建|建立|建成|建|成立|创立|创建|创办|出生|生|逝世|发布|发行|开通|完成)"
    rf"于(?P<a>{_DATE_ZH})"
)
# what a gap may hide: a date, a number with what it counts, a name of several words after a preposition
_UNIT = "(?: (?:percent|per cent|million|billion|years|people|kilometres|km|miles|metres))?%?"
_GAP = re.compile(
    rf"(?: (?={_DATE}|[$\d])| (?:by|in|at|from|with|of) )"
    rf"(?P<a>{_DATE}|\$?\d[\d,.]*\d{_UNIT}|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)+)(?=[ ,.;)])"
)
_GAP_ZH = re.compile(
    rf"(?P<a>{_DATE_ZH}|\d[\d,.]*[万亿]?(?:%|％|[人个次名座米公里元票岁年]+)|《[^》]{{2,20}}》|“[^”]{{2,12}}”)"
)
_CUT, _CUT_ON = re.compile(r"\d[,.，．]?$"), re.compile(r"[,.，．]?\d")  # of a number that no value covers
# rows of tables, code and its output, marks of citations, addresses: nobody asks for a gap in those
_NO_PROSE = re.compile(r"[|`{}<>\\\n]|^\s*(?:#|\$|//)|[-=]>|\[\d+\]|://|\w\(")
_JOIN = re.compile(r", and (?=(?:when|which|what) )|，(?=[^，]+(?:什么|哪)[^，]*？$)")
_VAGUE = re.compile(
    r"^(?:(?:it|he|she|they|this|that|these|those|there|here|we|you|i|who|what|which|one|if|when|in|on|at|its?|his|her"
    r"|their|but|and|however|also|then|after|before|during|since|for|as|by|from|with|most|many|some|all|both)\b"
    r"|[它他她这那其该此本但而并也又在从对因如当后前有]|同时|此外|另外|目前|现在)",
    re.IGNORECASE,
)


def generate_single_hop(prompt: Prompt) -> dict[str, Any]:
    """Questions from sentences of the first passage.

    Example:
        >>> passage = PassageText(1, "The Mizar pump was built in 1912. It is loud.")
        >>> [found] = generate_single_hop(Prompt("generate_single_hop", passages=(passage,)))["questions"]
        >>> found["question"], found["answers"]
        ('When was the Mizar pump built?', ['1912'])
    """
    questions = [question for passage in prompt.passages[:1] for question in _questions(passage)]
    return {"questions": questions[: prompt.number("count", 1)]}


def generate_multi_hop(prompt: Prompt) -> dict[str, Any]:
    """A question for each of two passages, on different subjects, joined into one with an answer of two parts."""
    if len(prompt.passages) < 2:
        return {"questions": []}
    first, second = prompt.passages[:2]
    first_terms = set(terms(first.text))
    second_questions = [item for item in _questions(second) if set(terms(item["question"])) - first_terms]
    pairs = (
        (item, next((other for other in second_questions if other["answers"] != item["answers"]), None))
        for item in _questions(first)
    )
    joined = [_join_questions(item, other) for item, other in pairs if other is not None]
    return {"questions": joined[: prompt.number("count", 1)]}


def generate_check(prompt: Prompt) -> dict[str, Any]:
    """The answers that each passage alone gives; all passages are needed where each of them answers a part."""
    halves = _JOIN.split(prompt.request)  # a passage that knows one of two subjects answers that half
    answered = ([extract_answer(half, [passage]) for half in halves] for passage in prompt.passages)
    parts = [text for answers in answered if (text := next(filter(None, answers), ""))]
    return {
        "answerable": bool(parts),
        "answer": " ".join(parts)[:_MAX_ANSWER],
        "stands_alone": True,
        "needs_all": len(parts) == len(prompt.passages),
        "reason": f"{len(parts)} of {len(prompt.passages)} passages share the question's words.",
    }


def _questions(passage: PassageText) -> Iterator[dict[str, Any]]:
    """When something was made, of each thing once; then gaps in other sentences."""
    subjects: set[str] = set()
    gaps: list[dict[str, Any]] = []
    for sentence in sentences(passage.text)[:_MAX_SENTENCES]:
        text = sentence.text.strip()
        chinese = detect_language(text) == "zh"  # an English sentence may quote a Chinese word
        match = (_WHEN_ZH if chinese else _WHEN).search(text)
        if len(text) > 500 or _VAGUE.match(text):
            continue
        if match is None or match["what"] in subjects:
            gaps += _with_gap(text, chinese)
            continue
        subjects.add(match["what"])
        what = re.sub(r"^(?:The|An?)(?= )", lambda m: m[0].lower(), match["what"])
        when = (
            f"{what}{match['verb']}于什么时候？" if chinese else f"When {match['be']} {what} {match['verb']}?"
        )
        yield _question_row(when, match["a"], text)
    yield from gaps


def _with_gap(text: str, chinese: bool) -> list[dict[str, Any]]:
    """A sentence that says enough to be known again, without its date, number or name."""
    min_chars, max_chars = (16, 80) if chinese else (50, 160)
    match = (_GAP_ZH if chinese else _GAP).search(text)
    if match is None or not min_chars <= len(text) <= max_chars or _NO_PROSE.search(text):
        return []
    # the whole value that the text states there: ８７８，０００元, not ０００元
    values = (v for v in find_values(text) if v.start < match.end("a") and match.start("a") < v.end)
    places = [match.span("a"), *((value.start, value.end) for value in values)]
    start, end = min(place[0] for place in places), max(place[1] for place in places)
    if text.count(text[start:end]) > 1 or _CUT.search(text[:start]) or _CUT_ON.match(text[end:]):
        return []
    gapped = f"{text[:start]}____{text[end:]}".replace('"', "'")
    question = f"“{gapped}”，空缺处是什么？" if chinese else f'What belongs in the gap: "{gapped}"?'
    return [_question_row(question, text[start:end], text)]


def _question_row(question: str, answer: str, text: str) -> dict[str, Any]:
    return {"question": question, "answers": [answer.strip()], "reference": text, "quotes": [text]}


def _join_questions(item: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """One question of two, which `_JOIN` takes apart again."""
    first, second = item["question"], other["question"]
    chinese = first.endswith("？")
    question = f"{first[:-1]}，{second}" if chinese else f"{first[:-1]}, and {second[:1].lower()}{second[1:]}"
    return {
        "question": question,
        "answers": [*item["answers"], *other["answers"]],
        "reference": f"{item['reference']}{'' if chinese else ' '}{other['reference']}",
        "quotes": [*item["quotes"], *other["quotes"]],
    }
