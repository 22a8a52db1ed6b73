"""The tasks of a critic: ``critique``, ``critique_usefulness``, ``grade_support``, ``grade_usefulness``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.models.extractive.support import strength
from rag_kit.text import sentences
from rag_kit.text.citations.check import check_citations
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.evidence.passages import PassageText, is_question
from rag_kit.text.evidence.question import analyse, offers
from rag_kit.text.evidence.sentences import choose, collect
from rag_kit.text.evidence.terms import terms

_MAX_QUESTION = 4_000
_MAX_STATEMENTS = 20
_MARKS = re.compile(r"\s?\[\d{1,4}\]")
_OWN = 0.6
"""How much a statement's own words count in its rating, against those that its passage's title adds."""
_PARTIAL = 0.5
"""Share of a statement's words that a passage must hold to support it in part."""

_REASONS = {
    "en": {
        "supported": "Each statement is in the passages.",
        "unsupported": "The passages do not say: {}",
        "useful": "It holds what the question asks for.",
        "declined": "It declines.",
        "beside": "It shares too few words with the question.",
    },
    "zh": {
        "supported": "每个论断都有段落支持。",
        "unsupported": "段落中没有写明：{}",
        "useful": "其中有问题所问的内容。",
        "declined": "它没有回答。",
        "beside": "它与问题相同的词太少。",
    },
}


def critique(prompt: Prompt) -> Reply:
    """Label a statement and the passage that it rests on, by their words.

    Example:
        >>> body = "<statement>Jane Austen wrote Emma.</statement>"
        >>> passage = PassageText(1, "Jane Austen wrote Emma in 1815. It is a novel.")
        >>> dict(critique(Prompt("critique", "", "Who wrote Emma?", (passage,), (), None, "", body)).fields)
        {'relevance': 'relevant', 'support': 'full', 'usefulness': 5}
    """
    statement = prompt.block("statement")
    passages = prompt.passages[:1]
    relevant = _strength(prompt.question, passages) >= 0.5
    fields = {
        "relevance": "relevant" if relevant else "irrelevant",
        "support": _support(statement, passages[0].text) if passages else "none",
        "usefulness": _rating(prompt, passages[0].title if passages else ""),
    }
    return Reply(", ".join(map(str, fields.values())), fields, as_json=True)


def critique_usefulness(prompt: Prompt) -> Reply:
    """Rate a statement that rests on no passage."""
    rating = _rating(prompt, "")
    return Reply(str(rating), {"usefulness": rating}, as_json=True)


def grade_support(prompt: Prompt) -> Reply:
    """Whether some passage supports each sentence of the answer; numbers of passages in it do not matter."""
    answer = prompt.block("answer")
    said = _REASONS[prompt.language]
    statements = [_MARKS.sub("", one.text) for one in sentences(answer)][:_MAX_STATEMENTS]
    verdicts = [
        any(_support(one, passage.text) == "full" for passage in prompt.passages) for one in statements
    ]
    good = is_declined(answer) or (bool(verdicts) and all(verdicts))
    missing = next((one for one, here in zip(statements, verdicts, strict=True) if not here), "")
    fields = {
        "relevant": good,
        "score": 1.0 if good else sum(verdicts) / max(1, len(verdicts)),
        "reason": said["supported"] if good else said["unsupported"].format(missing[:200] or "?"),
    }
    return Reply(str(fields["reason"]), fields, as_json=True)


def grade_usefulness(prompt: Prompt) -> Reply:
    """Whether the answer holds what is asked for: it does not decline, and speaks about the thing asked about."""
    answer = _MARKS.sub("", prompt.block("answer"))
    said = _REASONS[prompt.language]
    value = round(_strength(prompt.question, [PassageText(1, answer)]), 3)
    question = analyse(prompt.question[:_MAX_QUESTION])
    declined = is_declined(answer)
    useful = not declined and bool(question.keys & frozenset(terms(answer)))
    fields = {
        "relevant": useful,
        "score": 0.0 if declined else value,
        "reason": said["useful" if useful else "declined" if declined else "beside"],
    }
    return Reply(str(fields["reason"]), fields, as_json=True)


def _strength(question: str, passages: Sequence[PassageText]) -> float:
    asked = analyse(question[:_MAX_QUESTION])
    found = collect(asked, passages)
    return strength(asked, passages, found, choose(asked, found))


def _support(statement: str, passage: str) -> str:
    """``full`` if each word and number is borne out, ``partial`` for a good part of the words, else ``none``."""
    report = check_citations(f"{_MARKS.sub('', statement)}[1]", [passage])
    if report.status == "grounded":
        return "full"
    keys = frozenset(terms(statement))
    best = max((len(keys & frozenset(terms(one.text))) for one in sentences(passage)), default=0)
    # a number, name or negation that was changed is a contradiction and no part
    changed = any(word for word in re.findall(r"\d+", statement) if word not in passage)
    return "partial" if keys and not changed and best / len(keys) >= _PARTIAL else "none"


def _rating(prompt: Prompt, title: str) -> int:
    """From 1 to 5, by how much of the question's weight stands in the statement, the answer before it and the title.

    What adds no term of the question, or asks itself, is worth little; what offers nothing of the kind that is asked
    for (a person, a time, a number ...) is worth no more than the middle.
    """
    statement, answer = prompt.block("statement"), prompt.block("answer")
    question = analyse(prompt.question[:_MAX_QUESTION])
    salience = {term.key: term.salience for term in question.terms}
    added = frozenset(terms(statement)) - frozenset(terms(answer))
    said = frozenset(terms(f"{answer} {statement}"))

    def share(keys: frozenset[str]) -> float:
        return sum(salience[key] for key in question.keys & keys) / (sum(salience.values()) or 1.0)

    rating = 1 + round(4 * (_OWN * share(said) + (1 - _OWN) * share(said | frozenset(terms(title)))))
    if is_question(statement) or (answer and not question.keys & added):
        return min(2, rating)
    offered = question.kind == "other" or offers(question.kind, statement, question.text) > 0
    return rating if offered else min(3, rating)
