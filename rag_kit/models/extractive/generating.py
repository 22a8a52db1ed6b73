"""Texts about passages by rule: first sentences as summaries, lines as tags, sentences with a gap as questions."""

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

_SUMMARY = 2  # sentences
_MAX_ANSWER = 4_000
_MAX_SENTENCES = 60
_MAX_READ = 20_000  # characters of a passage
_MIN_CHARS, _MAX_CHARS = {"en": 40, "zh": 16}, {"en": 200, "zh": 100}  # of a sentence that gets a gap
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
# what a gap may hide: a date, a number with what it counts, a name of several words after a preposition
_GAP = {
    "en": re.compile(
        r" (?:(?:by|in|on|at|from|with|of) )?"
        rf"(?P<answer>(?:(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?)?[12]\d{{3}}|\$?\d[\d,.]*\d%?"
        r"|(?<= (?:by|in|on|at|of) )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)+)(?=[ ,.;)])"
    ),
    "zh": re.compile(
        r"(?P<answer>(?:公元前?)?\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|\d{1,2}世纪|\d[\d,.]*[万亿]?(?:%|％|[人个次名座米公里元票岁]+)"
        r"|《[^》]{2,20}》|“[^”]{2,12}”)"
    ),
}
# rows of tables, code and its output, marks of citations, addresses: nobody asks for a gap in those
_NO_PROSE = re.compile(r"[|`{}<>\\\n]|^\s*(?:#|\$|//)|[-=]>|\[\d+\]|://|\w\(")
_VAGUE = re.compile(
    r"(?:it|he|she|they|this|that|these|those|there|here|we|you|i|its?|his|her|their|but|and|however|also)\b"
    r"|[它他她这那其该此本但而并也]",
    re.IGNORECASE,
)
_TAG = re.compile(r"^[\s*#>|-]*([^\s:：*|][^:：\n]{0,39}?)\**\s*[:：]\s*(\S[^\n]{0,79})$", re.MULTILINE)
_ASK = {"en": 'What belongs in the gap: "{}"?', "zh": "“{}”，空缺处是什么？"}
_JOIN = {"en": " And: ", "zh": "另外："}


def represent_summary(prompt: Prompt) -> dict[str, Any]:
    """Summarise each passage by its first two sentences.

    Example:
        >>> passage = PassageText(1, "The pump cools the engine. It is blue. It rains.")
        >>> represent_summary(Prompt("represent_summary", passages=(passage,)))
        {'passages': [{'id': 1, 'texts': ['The pump cools the engine. It is blue.']}]}
    """
    rows = []
    for passage in prompt.passages:
        texts = [sentence.text for sentence in sentences(passage.text[:_MAX_READ])]
        ended = [text for text in texts if text.endswith(tuple(".!?。！？"))]  # no headings
        rows.append({"id": passage.number, "texts": [" ".join((ended or texts)[:_SUMMARY])]})
    return {"passages": rows}


def represent_tags(prompt: Prompt) -> dict[str, Any]:
    """Read tags off lines such as ``Topic: pumps``, for the allowed names; ``language`` is detected, if allowed."""
    allowed = {name.strip().casefold(): name.strip() for name in prompt.block("names").split(",")}
    rows = []
    for passage in prompt.passages:
        tags: dict[str, str] = {"language": detect_language(passage.text)} if "language" in allowed else {}
        for match in _TAG.finditer(passage.text[:_MAX_READ]):
            if (name := match[1].strip().casefold()) in allowed:
                tags.setdefault(name, match[2].strip())
        texts = [f"{allowed[name]}: {value}" for name, value in tags.items()]
        rows.append({"id": passage.number, "texts": texts})
    return {"passages": rows}


def generate_single_hop(prompt: Prompt) -> dict[str, Any]:
    """Turn sentences of the first passage into questions, each with a gap.

    Example:
        >>> passage = PassageText(1, "The Mizar pump in the old mill was built in 1912. It is loud.")
        >>> [found] = generate_single_hop(Prompt("generate_single_hop", passages=(passage,)))["questions"]
        >>> found["question"], found["answers"]
        ('What belongs in the gap: "The Mizar pump in the old mill was built in ____."?', ['1912'])
    """
    questions = [question for passage in prompt.passages[:1] for question in _questions(passage)]
    return {"questions": questions[: prompt.number("count", 1)]}


def generate_multi_hop(prompt: Prompt) -> dict[str, Any]:
    """Join a question on the first passage and one on the second, about something else, into one question."""
    if len(prompt.passages) < 2:
        return {"questions": []}
    first, second = prompt.passages[:2]
    known = set(terms(first.text))
    others = [item for item in _questions(second) if set(terms(item["question"])) - known]
    joined = []
    for item in _questions(first):
        with_other_answer = [other for other in others if other["answers"] != item["answers"]]
        if with_other_answer:
            joined.append(_join_questions(item, with_other_answer[0]))
    return {"questions": joined[: prompt.number("count", 1)]}


def generate_check(prompt: Prompt) -> dict[str, Any]:
    """Answer each half of a joined question from each passage alone; all are needed if each answers a half."""
    halves = re.split("|".join(_JOIN.values()), prompt.request)
    answers: list[str] = []
    for passage in prompt.passages:
        of_halves = (extract_answer(half, [passage]) for half in halves)
        answers += [text for text in of_halves if text][:1]
    return {
        "answerable": bool(answers),
        "answer": " ".join(answers)[:_MAX_ANSWER],
        "stands_alone": True,
        "needs_all": len(answers) == len(prompt.passages),
        "reason": f"{len(answers)} of {len(prompt.passages)} passages share the question's words.",
    }


def _questions(passage: PassageText) -> Iterator[dict[str, Any]]:
    """Yield questions: sentences of the passage with a date, number or name replaced by a gap, which is asked for."""
    for sentence in sentences(passage.text)[:_MAX_SENTENCES]:
        text = sentence.text.strip()
        language = detect_language(text)  # an English sentence may quote a Chinese word
        gap = _GAP[language].search(text)
        if gap is None or _NO_PROSE.search(text) or _VAGUE.match(text):
            continue
        start, end = gap.span("answer")
        for value in find_values(text):  # 878,000 EUR, not 000 EUR
            if value.start < end and start < value.end:
                start, end = min(start, value.start), max(end, value.end)
        answer = text[start:end].strip()
        if _MIN_CHARS[language] <= len(text) <= _MAX_CHARS[language] and text.count(answer) == 1:
            question = _ASK[language].format(f"{text[:start]}____{text[end:]}".replace('"', "'"))
            yield {"question": question, "answers": [answer], "reference": text, "quotes": [text]}


def _join_questions(item: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Join two questions into one, which `generate_check` takes apart again."""
    language = detect_language(item["question"])
    return {
        "question": f"{item['question']}{_JOIN[language]}{other['question']}",
        "answers": [*item["answers"], *other["answers"]],
        "reference": f"{item['reference']}{'' if language == 'zh' else ' '}{other['reference']}",
        "quotes": [*item["quotes"], *other["quotes"]],
    }
