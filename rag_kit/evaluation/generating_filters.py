"""What a written question must hold to; one that does not is refused with a reason that is counted.

Nothing of this believes the model: ids are those of the pieces that it was shown, and a span is where its words stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.generating_pieces import Piece, digest
from rag_kit.text import content_words, detect_language, fold

#: Reason -> what it means.
REASONS = {
    "model_failed": "the model gave nothing that fits the schema; name one that can write JSON",
    "nothing_to_ask": "the model found no question in the passage; give longer ones, with names and numbers",
    "not_a_question": "empty, of one word, or too long",
    "wrong_language": "another language than that of the sentence asked about, or than the one asked for",
    "not_alone": "is understood only beside its passage",
    "quote_not_found": "the words that it rests on do not stand in the passage",
    "one_passage_is_enough": "meant for two passages, and one of them answers it",
    "answer_not_found": "the short answer does not stand in the passage",
    "leaks_answer": "the question holds its answer",
    "not_answerable": "asked anew, the passage gave no answer, or another one",
    "duplicate": "asks what a question before asks",
}
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


def example_of(item: Mapping[str, Any], kind: str, pieces: Sequence[Piece]) -> Example | str:
    """The example that a written question makes, or the reason why it makes none.

    Args:
        item: ``question``, ``answers``, ``reference``, ``quotes`` as the model wrote them.
        kind: ``"single_hop"`` or ``"multi_hop"``.
        pieces: What the model was shown.
    """
    question, reference, answers = item["question"].strip(), item["reference"].strip(), item["answers"]
    spans = _spans(item["quotes"], pieces)
    quoted = "\n".join(span.text for span, _ in spans or ())
    language = detect_language(quoted) if quoted else pieces[0].language
    used = [piece for piece in pieces if any(each is piece for _, each in spans or ())]
    if not _is_question(question):
        return "not_a_question"
    if {detect_language(question), detect_language(reference or question)} != {language}:
        return "wrong_language"
    if points_outside(question, language):
        return "not_alone"
    if spans is None:
        return "quote_not_found"
    if kind == "multi_hop" and len(used) < len(pieces):
        return "one_passage_is_enough"
    texts = fold("\n".join(piece.text for piece in pieces))
    if not answers or not reference or not all(0 < len(a) <= 200 and fold(a) in texts for a in answers):
        return "answer_not_found"
    if any(leaks(answer, question) for answer in answers):
        return "leaks_answer"
    return Example(
        f"q-{digest(question, reference)[:12]}",
        question,
        reference=reference,
        answers=answers if len(answers) == 1 else (),
        reference_contexts=tuple(piece.text for piece in used),
        relevant={piece.document: 1 for piece in used},
        spans=tuple(span for span, _ in spans),
        answerable=True,
        tags={"type": kind, "language": language},
        metadata={
            "generated": True,
            **({"answer_parts": [[a] for a in answers]} if len(answers) > 1 else {}),
        },
    )


def refused_by(check: Mapping[str, Any], item: Mapping[str, Any], kind: str) -> str | None:
    """The reason why a question is refused that the model, asked anew, gave this check of."""
    if not check:
        return "model_failed"
    if not check["stands_alone"]:
        return "not_alone"
    if not check["answerable"] or not agrees(check["answer"], item["answers"]):
        return "not_answerable"
    return "one_passage_is_enough" if kind == "multi_hop" and not check["needs_all"] else None


def is_duplicate(example: Example, accepted: Sequence[Example]) -> bool:
    """Whether one before asks the same: the same words, or nearly all of them with the same answer."""
    words = frozenset(content_words(example.question))
    for other in accepted:
        others = frozenset(content_words(other.question))
        shared = len(words & others) / max(1, len(words | others))
        same = (other.answers, other.metadata) == (example.answers, example.metadata)
        if fold(other.question) == fold(example.question) or shared >= (_ALIKE / 2 if same else _ALIKE):
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
    vague = _EN_PRONOUN.search(question) and not _EN_NAMED.search(question)
    return bool(_EN_POINTS.search(question) or vague)


def leaks(answer: str, question: str) -> bool:
    """Whether a question holds the answer, or all its content words.

    Example:
        >>> leaks("1815", "What was built in 1815?"), leaks("Ada", "Who built the canal in Nevada?")
        (True, False)
    """
    wanted = re.escape(fold(answer).strip())
    edge = rf"(?<![a-z0-9]){wanted}(?![a-z0-9])" if wanted.isascii() else wanted
    words = frozenset(content_words(answer))
    asked = frozenset(content_words(question))
    return bool(re.search(edge, fold(question))) or (len(words) > 1 and words <= asked)


def agrees(said: str, answers: Sequence[str]) -> bool:
    """Whether another answer says the same: every part stands in it, or nearly all its words do."""
    words = frozenset(content_words(said))
    needed = [(fold(part), frozenset(content_words(part))) for part in answers]
    return all(part in fold(said) or (own and len(own & words) / len(own) >= 0.75) for part, own in needed)


def _is_question(question: str) -> bool:
    words = len(question.split())
    return 5 <= len(question) <= 400 and (words > 1 or not question.isascii())


def _spans(quotes: Sequence[str], pieces: Sequence[Piece]) -> list[tuple[GoldSpan, Piece]] | None:
    """Where the quotes stand; ``None`` if one stands nowhere, or there is none."""
    found: dict[GoldSpan, Piece] = {}
    for quote in quotes:
        for piece in pieces:
            if (match := _find(quote, piece.text)) is not None:
                found[GoldSpan(piece.document, match[0], piece.start + match.start())] = piece
                break
        else:
            return None
    return list(found.items()) or None


def _find(quote: str, text: str) -> re.Match[str] | None:
    """The place of a quote; white space may differ, and an ellipsis or quotation marks at its ends may stand."""
    words = quote.strip(" \t\n\"“”'‘’…").removesuffix("...").split()
    return re.search(r"\s+".join(map(re.escape, words)), text) if words else None
