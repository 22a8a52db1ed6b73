"""What a written question must hold to; every one that does not is dropped with a reason that is counted.

Nothing here believes the model: ids are those of the pieces that it was shown, and a span is where its words stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.sets.generating.sources import Piece
from rag_kit.evaluation.sets.values import made_id
from rag_kit.text import content_words, detect_language, fold

#: Reason -> what it means, in the order in which questions are looked at.
REASONS: dict[str, str] = {
    "model_failed": "the model gave nothing that fits the schema",
    "nothing_to_ask": "the model found no question in the passage",
    "not_a_question": "empty, of one word, or too long",
    "wrong_language": "another language than that of the sentence asked about",
    "not_alone": "is understood only beside its passage",
    "quote_not_found": "the words that it rests on do not stand in the passage",
    "one_passage_is_enough": "meant for two passages, and one of them answers it",
    "answer_not_found": "the short answer does not stand in the passage",
    "leaks_answer": "the question holds its answer",
    "not_answerable": "asked anew, the passage gave no answer, or another one",
    "duplicate": "asks what a question before asks",
}

_MAX_QUESTION = 400
_MAX_ANSWER = 200
_ALIKE = 0.8
_EN_POINTS = re.compile(
    r"\b(?:the|this|these|those|that|given|provided|above|following|first|second|both|two) "
    r"(?:passages?|texts?|documents?|excerpts?|paragraphs?|snippets?|contexts?|articles?|sections?|author'?s?)\b"
    r"|\b(?:mentioned|described|discussed|listed|stated|shown) (?:above|below|here|in (?:the|this))\b|\bpassage \d"
    r"|\baccording to (?:it|them|him|her|this)\b",
    re.IGNORECASE,
)
_EN_PRONOUN = re.compile(
    r"^(?:\w+['’]?\w* ){0,3}?(?:he|she|it|they|him|them|this|that|these|those)(?: (?:\w+))?\b", re.IGNORECASE
)
_EN_NAMED = re.compile(r"(?<!^)\b[A-Z][\w'’-]*|\d|\"|“")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"")
_ZH_POINTS = re.compile(
    r"(?:(?<![日剧基版原样标])本|该|此|这|上|下|前|原|两)(?:段|篇|文|个?段落|篇?文章|份?文档|材料|节|章)|文中|上述|以上|作者|这里|段落"
)
_ZH_PRONOUN = re.compile(r"^[^，。？]{0,4}?(?:他们|她们|它们|他|她|它|其(?!他|它|余|中)|该|此|这)")


def looked_at(
    item: Mapping[str, Any], check: Mapping[str, Any] | None, kind: str, pieces: Sequence[Piece]
) -> Example | str:
    """The example that an item makes, or the reason why it makes none.

    Args:
        item: ``question``, ``answers``, ``reference``, ``quotes`` as the model wrote them.
        check: ``answerable``, ``answer``, ``stands_alone``, ``needs_all``; ``None`` before the question was checked.
        kind: ``"single_hop"`` or ``"multi_hop"``.
        pieces: What the model was shown.
    """
    question, answers = str(item["question"]).strip(), [str(each) for each in item["answers"]]
    spans = _spans(item["quotes"], pieces)
    language = _language(spans, pieces)
    if not _is_question(question):
        return "not_a_question"
    if detect_language(question) != language or detect_language(item["reference"] or question) != language:
        return "wrong_language"
    if points_outside(question, language):
        return "not_alone"
    if spans is None:
        return "quote_not_found"
    if kind == "multi_hop" and len({place for place, _ in spans}) < len(pieces):
        return "one_passage_is_enough"
    texts = fold("\n".join(piece.text for piece in pieces))
    short = bool(answers) and all(0 < len(each) <= _MAX_ANSWER and fold(each) in texts for each in answers)
    if not short or not str(item["reference"]).strip():
        return "answer_not_found"
    if any(leaks(each, question) for each in answers):
        return "leaks_answer"
    if check is not None:
        if not check["stands_alone"]:
            return "not_alone"
        if not check["answerable"] or not agrees(str(check["answer"]), answers):
            return "not_answerable"
        if kind == "multi_hop" and not check["needs_all"]:
            return "one_passage_is_enough"
    return _example(question, answers, str(item["reference"]).strip(), kind, pieces, spans)


def duplicates(example: Example, accepted: Sequence[Example]) -> bool:
    """Whether one before asks the same: the same words, or nearly all of them with the same answer."""
    words = frozenset(content_words(example.question))
    for other in accepted:
        if fold(other.question) == fold(example.question):
            return True
        others = frozenset(content_words(other.question))
        shared = len(words & others) / max(1, len(words | others))
        if shared >= _ALIKE or (shared >= _ALIKE / 2 and _short(other) == _short(example)):
            return True
    return False


def points_outside(question: str, language: str) -> bool:
    """Whether a question speaks of "the passage", or of "it" with nothing named.

    Example:
        >>> points_outside("What does the passage say?", "en"), points_outside("Who built the Mizar pump?", "en")
        (True, False)
        >>> points_outside("他是哪年出生的？", "zh"), points_outside("鲁迅是哪年出生的？", "zh")
        (True, False)
    """
    question = _QUOTED.sub("", question)  # a sentence with a gap is quoted; its words are the passage's own
    if language == "zh":
        return bool(_ZH_POINTS.search(question) or _ZH_PRONOUN.search(question))
    if _EN_POINTS.search(question):
        return True
    return bool(_EN_PRONOUN.search(question)) and not _EN_NAMED.search(question)


def leaks(answer: str, question: str) -> bool:
    """Whether a question holds the answer, or all its content words.

    Example:
        >>> leaks("1815", "What was built in 1815?"), leaks("Ada", "Who built the canal in Nevada?")
        (True, False)
    """
    asked, wanted = fold(question), fold(answer).strip()
    if not wanted:
        return True
    edge = r"(?<![a-z0-9]){}(?![a-z0-9])" if wanted.isascii() else "{}"
    if re.search(edge.format(re.escape(wanted)), asked):
        return True
    words = frozenset(content_words(answer))
    return len(words) > 1 and words <= frozenset(content_words(question))


def agrees(said: str, answers: Sequence[str]) -> bool:
    """Whether another answer says the same: every part stands in it, or nearly all its words do."""
    folded = fold(said)
    words = frozenset(content_words(said))
    for part in answers:
        needed = frozenset(content_words(part))
        if fold(part) in folded or (fold(said).strip(" .。") and fold(said).strip(" .。") == fold(part)):
            continue
        if not needed or len(needed & words) / len(needed) < 0.75:
            return False
    return bool(answers)


def _is_question(question: str) -> bool:
    return (
        len(question) <= _MAX_QUESTION
        and len(question.split()) > (1 if question.isascii() else 0)
        and (len(question) >= 5)
    )


def _language(spans: Sequence[tuple[int, GoldSpan]] | None, pieces: Sequence[Piece]) -> str:
    """Of the sentences asked about: a page in English may hold Chinese examples, and the other way round."""
    if not spans:
        return pieces[0].language
    return detect_language("\n".join(span.text for _, span in spans))


def _spans(quotes: Sequence[Any], pieces: Sequence[Piece]) -> list[tuple[int, GoldSpan]] | None:
    """Where the quotes stand: ``(which piece, span)``; ``None`` if one stands nowhere, or there is none."""
    found: list[tuple[int, GoldSpan]] = []
    for quote in quotes:
        for place, piece in enumerate(pieces):
            match = _find(str(quote), piece.text)
            if match is not None:
                start, end = match
                span = GoldSpan(piece.document, piece.text[start:end], piece.start + start)
                if (place, span) not in found:
                    found.append((place, span))
                break
        else:
            return None
    return found or None


def _find(quote: str, text: str) -> tuple[int, int] | None:
    """The place of a quote; white space may differ, and an ellipsis or quotation marks at its ends may stand."""
    words = quote.strip(" \t\n\"“”'‘’…").removesuffix("...").split()
    if not words:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return None if match is None else match.span()


def _short(example: Example) -> str:
    parts = example.metadata.get("answer_parts")
    return fold(" ".join(part[0] for part in parts) if parts else " ".join(example.answers))


def _example(
    question: str, answers: list[str], reference: str, kind: str, pieces: Sequence[Piece],
    spans: Sequence[tuple[int, GoldSpan]],
) -> Example:  # fmt: skip
    gold = [place for place in range(len(pieces)) if place in {each for each, _ in spans}]
    return Example(
        made_id(question, reference),
        question,
        reference=reference,
        answers=tuple(answers) if len(answers) == 1 else (),
        reference_contexts=tuple(pieces[place].text for place in gold),
        relevant=dict.fromkeys((pieces[place].document for place in gold), 1),
        spans=tuple(span for _, span in spans),
        answerable=True,
        tags={"type": kind, "language": _language(spans, pieces)},
        metadata={
            "generated": True,
            **({"answer_parts": [[a] for a in answers]} if len(answers) > 1 else {}),
        },
    )
