"""Grades of passages and answers: by the evidence of their words, and by what the check of citations says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_kit.models.extractive.answering import strength_of
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text import sentences
from rag_kit.text.citations.check import check_citations, renumber
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.evidence.questions import Question, analyse, offers, terms
from rag_kit.text.evidence.sentences import collect, is_question, weight_of
from rag_kit.text.evidence.usefulness import PassageUsefulness, usefulness

_MAX_STATEMENTS = 20
_NEAR_BEST = 0.5
_SUPPORT = {"grounded": "full", "undecided": "partial"}  # by the status of the check
_REASONS = {
    "en": ("Each statement is in the passages.", "The passages do not say: {}", "By shared words: {:.0%}."),
    "zh": ("每个论断都有段落支持。", "段落中没有写明：{}", "依据相同的词：{:.0%}。"),
}


def grade_passage(prompt: Prompt) -> dict[str, Any]:
    """Grade how surely the first passage of the prompt helps to answer."""
    grades = usefulness(prompt.question, prompt.passages[:1])
    return _grade(grades[0] if grades else PassageUsefulness(0.0, {"own": 0.0}))


def grade_passages(prompt: Prompt) -> dict[str, Any]:
    """Grade how surely each passage helps to answer, compared with the others."""
    grades = zip(prompt.passages, usefulness(prompt.question, prompt.passages), strict=True)
    return {"grades": [{"id": passage.number, **_grade(grade)} for passage, grade in grades]}


def rank(prompt: Prompt) -> dict[str, list[int]]:
    """Order all passages by the score of their best sentence; ties keep their order."""
    values = _best_sentence_scores(prompt)
    order = sorted(range(len(values)), key=lambda position: -values[position])
    return {"ranking": [prompt.passages[position].number for position in order]}


def compress(prompt: Prompt) -> dict[str, list[int]]:
    """Choose the sentences that score at least half as much as the best one."""
    values = _best_sentence_scores(prompt)  # each passage of this prompt is one sentence
    low = _NEAR_BEST * max(values, default=0.0)
    pairs = zip(prompt.passages, values, strict=True)
    return {"sentences": [passage.number for passage, value in pairs if value > 0 and value >= low]}


def critique(prompt: Prompt) -> dict[str, Any]:
    """Label statements: the first half of the prompt's passages are passages, the second half a statement on each."""
    question, count = analyse(prompt.question), len(prompt.passages) // 2
    labels = []
    for passage, statement in zip(prompt.passages[:count], prompt.passages[count:], strict=False):
        relevant = strength_of(question, [passage]) >= 0.5
        labels.append(
            {
                "id": passage.number,
                "relevance": "relevant" if relevant else "irrelevant",
                "support": _support(statement.text, [passage.text]),
                "usefulness": _usefulness(question, statement.text, prompt.block("answer")),
            }
        )
    return {"labels": labels}


def critique_usefulness(prompt: Prompt) -> dict[str, int]:
    """Rate a statement from 1 to 5, by how much of the question it holds with the answer before it."""
    question = analyse(prompt.question)
    return {"usefulness": _usefulness(question, prompt.block("statement"), prompt.block("answer"))}


def _usefulness(question: Question, statement: str, answer: str) -> int:
    """Rate a statement from 1 to 5 by the share of the question's terms in it and the answer before it.

    A statement that adds none of these terms gets 2 at most; one that offers nothing of the kind that is asked for (a
    person, a time ...) gets 3 at most.
    """
    before, stated = frozenset(terms(answer)), frozenset(terms(statement))
    rating = 1 + round(4 * weight_of(question, question.keys & (before | stated)))
    if is_question(statement) or (answer and not question.keys & (stated - before)):
        return min(2, rating)
    if question.kind != "other" and not offers(question.kind, statement, question.text):
        return min(3, rating)
    return rating


def grade_support(prompt: Prompt) -> dict[str, Any]:
    """Tell whether some passage supports each sentence of the answer, whatever numbers it cites."""
    answer = prompt.block("answer")
    texts = [passage.text for passage in prompt.passages]
    statements = [one.text for one in sentences(answer) if not one.text.startswith("#")][:_MAX_STATEMENTS]
    missing = [statement for statement in statements if _support(statement, texts) != "full"]
    supported, unsupported, _ = _REASONS[prompt.language]
    if is_declined(answer) or (statements and not missing):
        return {"relevant": True, "score": 1.0, "reason": supported}
    first = renumber(missing[0], {}, texts)[:200] if missing else "?"  # without its citations
    score = 1 - len(missing) / max(1, len(statements))
    return {"relevant": False, "score": score, "reason": unsupported.format(first)}


def grade_usefulness(prompt: Prompt) -> dict[str, Any]:
    """Grade whether the answer is about what is asked for: by its share of the question's terms, 0 if it declines."""
    answer = prompt.block("answer")
    question = analyse(prompt.question)
    share = 0.0 if is_declined(answer) else weight_of(question, question.keys & set(terms(answer)))
    return {"relevant": share > 0, "score": share, "reason": _REASONS[prompt.language][2].format(share)}


def _grade(grade: PassageUsefulness) -> dict[str, Any]:
    reason = f"{grade.measures['own']:.0%} of the question's terms in its best sentence."
    return {"relevant": grade.value >= 0.5, "score": round(grade.value, 3), "reason": reason}


def _best_sentence_scores(prompt: Prompt) -> list[float]:
    """Return for each passage the score of its best sentence, 0 without evidence."""
    values = [0.0] * len(prompt.passages)
    for sentence in collect(analyse(prompt.question), prompt.passages):
        values[sentence.passage_index] = max(values[sentence.passage_index], sentence.worth())
    return values


def _support(statement: str, passages: Sequence[str]) -> str:
    """Return ``full`` if a passage says the statement, ``partial`` if its words do not tell, else ``none``."""
    words = set(terms(statement))
    labels = set()
    for text in passages:
        if words & set(terms(text)):  # a text without a shared word supports nothing
            cited = f"{renumber(statement, {}, [text])}[1]"  # the statement, citing this text alone
            labels.add(_SUPPORT.get(check_citations(cited, [text]).status, "none"))
    return next((label for label in ("full", "partial") if label in labels), "none")
