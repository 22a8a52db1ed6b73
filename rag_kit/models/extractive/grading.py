"""The tasks of a judge that grades passages, sentences, citations and nuggets: by words alone.

A prompt asks for ``judge_sentences``, ``judge_relevance``, ``judge_citation``, ``judge_nuggets`` or
``judge_nugget_support``. How far such a judge can be trusted is measured in docs/benchmarks.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.evidence import PassageText, collect
from rag_kit.models.extractive.holding import Text
from rag_kit.models.extractive.question import analyse, offers
from rag_kit.models.extractive.tasks import Reply
from rag_kit.models.extractive.terms import terms
from rag_kit.models.extractive.usefulness import usefulness
from rag_kit.models.extractive.worth import worth
from rag_kit.text import sentences

_SHARE = 0.5
"""How near a sentence must come to the best one to be relevant too."""
_LEAST_WORTH = 0.2
_GRADES = (0.15, 0.5, 0.8)
"""From which usefulness on a passage gets the grades 1, 2 and 3."""
_PARTIAL = 0.5
"""Share of a statement's words that make it said in part."""
_MAX_QUESTION = 4_000
_MAX_NUGGET = 300
_MARKS = re.compile(r"\s?\[\d{1,4}\]")

_SAID = {
    "en": {
        "relevance": "{:.0%} of the question's words stand in its best sentence.",
        "full": "The passage says it.",
        "partial": "The passage says a part of it.",
        "none": "The passage does not say it.",
    },
    "zh": {
        "relevance": "最相关的一句含有问题中 {:.0%} 的词语。",
        "full": "段落写明了这一点。",
        "partial": "段落只写出一部分。",
        "none": "段落没有写到这一点。",
    },
}


def relevant_sentences(question: str, texts: Sequence[str]) -> list[int]:
    """Indexes of the sentences that are relevant to a question, by their words.

    Relevant is what holds words of the question or what it asks for, and comes near the best of all sentences.

    Example:
        >>> relevant_sentences("How long is the Rhine?", ["The Rhine is 1,230 km long.", "Cats sleep."])
        [0]
    """
    values = [0.0] * len(texts)
    passages = [PassageText(number, text) for number, text in enumerate(texts, start=1)]
    for found in collect(analyse(question[:_MAX_QUESTION]), passages):
        values[found.place] = max(values[found.place], worth(found))
    low = max(_LEAST_WORTH, _SHARE * max(values, default=0.0))
    return [place for place, value in enumerate(values) if value >= low]


def judge_sentences(prompt: Prompt) -> Reply:
    """The numbers of the relevant sentences."""
    chosen = relevant_sentences(prompt.question, [passage.text for passage in prompt.passages])
    numbers = [prompt.passages[place].number for place in chosen]
    return Reply(", ".join(map(str, numbers)), {"sentences": numbers}, as_json=True)


def judge_relevance(prompt: Prompt) -> Reply:
    """A grade from 0 to 3 for one passage, by how surely its words help."""
    found = usefulness(prompt.question, prompt.passages[:1])
    value, own = (found[0].value, found[0].measures["own"]) if found else (0.0, 0.0)
    grade = sum(value >= least for least in _GRADES)
    reason = _SAID[prompt.language]["relevance"].format(own)
    return Reply(str(grade), {"reason": reason, "grade": grade}, as_json=True)


def judge_citation(prompt: Prompt) -> Reply:
    """Whether the passages support a statement: word by word, numbers, names and negations too."""
    label = said(prompt.block("statement"), [passage.text for passage in prompt.passages])
    return Reply(label, {"reason": _SAID[prompt.language][label], "support": label}, as_json=True)


def judge_nuggets(prompt: Prompt) -> Reply:
    """Each sentence of the texts is a nugget; vital is what holds words of the question or what it asks for."""
    count = prompt.block("count")
    most = int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 20
    question = analyse(prompt.question[:_MAX_QUESTION])
    nuggets: dict[str, str] = {}
    for passage in prompt.passages:
        for one in sentences(passage.text):
            text = _MARKS.sub("", one.text)
            if not 0 < len(text) <= _MAX_NUGGET or not terms(text) or text in nuggets:
                continue
            near = bool(question.keys & frozenset(terms(text)))
            asked = question.kind != "other" and offers(question.kind, text, question.text) > 0
            nuggets[text] = (
                "vital" if not nuggets or (near and (asked or question.kind == "other")) else "okay"
            )
    ranked = sorted(nuggets.items(), key=lambda item: item[1] != "vital")[:most]
    fields = {"nuggets": [{"text": text, "importance": importance} for text, importance in ranked]}
    return Reply(f"{len(ranked)} nuggets", fields, as_json=True)


def judge_nugget_support(prompt: Prompt) -> Reply:
    """A label for each nugget: whether the answer says it."""
    answer = _MARKS.sub("", prompt.block("answer"))
    labels = [{"id": passage.number, "support": said(passage.text, [answer])} for passage in prompt.passages]
    return Reply(f"{len(labels)} labelled", {"labels": labels}, as_json=True)


def said(statement: str, passages: Sequence[str]) -> str:
    """``full``, ``partial`` or ``none``: how much of a statement the passages say.

    Example:
        >>> said("Emma is by Jane Austen.", ["Jane Austen wrote Emma in 1815. Emma is by Jane Austen."])
        'full'
        >>> said("Emma appeared in 1816.", ["Emma appeared in 1815."])
        'none'
    """
    statement = _MARKS.sub("", statement)
    if any(Text(passage).verdict(statement).status == "supported" for passage in passages):
        return "full"
    if len(passages) > 1 and Text("\n".join(passages)).verdict(statement).status == "supported":
        return "full"
    keys = frozenset(terms(statement))
    held = [
        len(keys & frozenset(terms(one.text))) / len(keys)
        for passage in passages
        for one in sentences(passage)
        if keys
    ]
    numbers = re.findall(r"\d+", statement)
    changed = any(all(number not in passage for passage in passages) for number in numbers)
    return "partial" if not changed and max(held, default=0.0) >= _PARTIAL else "none"
