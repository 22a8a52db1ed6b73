"""Filters of generated questions: one that fails is refused with a reason that is counted.

Nothing believes the model: ids are those of the pieces that it was shown, and a span is where its words stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.generating_pieces import Piece
from rag_kit.evaluation.runs.rows import digest
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
_POINTS = re.compile(
    r"\b(?:the|this|these|those|that|given|provided|above|following|first|second|both|two) "
    r"(?:passages?|texts?|documents?|excerpts?|paragraphs?|snippets?|contexts?|articles?|sections?|author'?s?)\b"
    r"|\b(?:mentioned|described|discussed|listed|stated|shown) (?:above|below|here|in (?:the|this))\b|\bpassage \d"
    r"|^(?:when|where|what|who|how|why|which) (?:was|is|did|does|were|are) (?:he|she|it|they|this|that)\b"
    r"|(?:(?<![日剧基版原样标])本|该|此|这|上|下|前|原|两)(?:段|篇|文|个?段落|篇?文章|份?文档|材料|节|章)|文中|上述|以上|作者|这里|段落"
    r"|^[^，。？]{0,4}?(?:他们|她们|它们|他|她|它|其(?!他|它|余|中)|该|此|这)",
    re.IGNORECASE,
)


def example_of(item: Mapping[str, Any], kind: str, pieces: Sequence[Piece], wanted: str) -> Example | str:
    """The example that a question as a model wrote it makes, or the reason why it makes none."""
    question, reference, answers = item["question"].strip(), item["reference"].strip(), item["answers"]
    spans = _spans(item["quotes"], pieces)
    language = detect_language("\n".join(span.text for span in spans)) if spans else pieces[0].language
    used = [piece for piece in pieces if any(each is piece for each in spans.values())]
    if not 5 <= len(question) <= 400 or (question.isascii() and " " not in question):
        return "not_a_question"
    spoken = {detect_language(question), detect_language(reference or question)}
    if spoken != {language} or wanted not in ("auto", language):
        return "wrong_language"
    if points_outside(question):
        return "not_alone"
    if not spans:
        return "quote_not_found"
    if kind == "multi_hop" and len(used) < len(pieces):
        return "one_passage_is_enough"
    texts = fold("\n".join(piece.text for piece in pieces))
    if not answers or not reference or not all(0 < len(a) <= 200 and fold(a) in texts for a in answers):
        return "answer_not_found"
    if any(leaks(answer, question) for answer in answers):
        return "leaks_answer"
    parts = [[answer] for answer in answers]
    return Example(
        f"q-{digest([question, reference])[:12]}",
        question,
        reference=reference,
        answers=answers if len(answers) == 1 else (),
        reference_contexts=tuple(piece.text for piece in used),
        relevant={piece.document: 1 for piece in used},
        spans=tuple(spans),
        answerable=True,
        tags={"type": kind, "language": language},
        metadata={"generated": True, **({"answer_parts": parts} if len(parts) > 1 else {})},
    )


def refused_by(check: Mapping[str, Any], answers: Sequence[str], kind: str) -> str | None:
    """The reason to refuse a question, from the model's check of it in a second call; ``None`` where it passes."""
    if not check["stands_alone"]:
        return "not_alone"
    if not check["answerable"] or not agrees(check["answer"], answers):
        return "not_answerable"
    return "one_passage_is_enough" if kind == "multi_hop" and not check["needs_all"] else None


def is_duplicate(example: Example, accepted: Sequence[Example]) -> bool:
    """Whether an accepted question asks the same: the same words, or nearly all of them with the same answer."""
    words = frozenset(content_words(example.question))
    for other in accepted:
        others = frozenset(content_words(other.question))
        same = (other.answers, other.metadata) == (example.answers, example.metadata)
        if len(words & others) >= (0.4 if same else 0.8) * len(words | others):
            return True
    return False


def points_outside(question: str) -> bool:
    """Whether a question speaks of "the passage", or of "it", with nothing named; quotations aside."""
    return bool(_POINTS.search(re.sub(r"“[^”]*”|\"[^\"]*\"", "", question)))


def leaks(answer: str, question: str) -> bool:
    """Whether a question holds the answer, or all its content words."""
    wanted = re.escape(fold(answer).strip())
    edge = rf"(?<![a-z0-9]){wanted}(?![a-z0-9])" if wanted.isascii() else wanted
    words, asked = frozenset(content_words(answer)), frozenset(content_words(question))
    return bool(re.search(edge, fold(question))) or (len(words) > 1 and words <= asked)


def agrees(said: str, answers: Sequence[str]) -> bool:
    """Whether another answer says the same: every part stands in it, or nearly all its words do."""
    words = frozenset(content_words(said))
    needed = [(fold(part), frozenset(content_words(part))) for part in answers]
    return all(part in fold(said) or len(own & words) >= max(1, 0.75 * len(own)) for part, own in needed)


def _spans(quotes: Sequence[str], pieces: Sequence[Piece]) -> dict[GoldSpan, Piece]:
    """Where the quotes stand, whatever white space and outer quotation marks they have; empty if one stands nowhere."""
    found: dict[GoldSpan, Piece] = {}
    for quote in quotes:
        words = quote.strip(" \t\n\"“”'‘’…").removesuffix("...").split()
        pattern = re.compile(r"\s+".join(map(re.escape, words)) or r"(?!)")
        matches = ((piece, pattern.search(piece.text)) for piece in pieces)
        piece, match = next(((piece, match) for piece, match in matches if match), (None, None))
        if piece is None or match is None:
            return {}
        found[GoldSpan(piece.document, match[0], piece.start + match.start())] = piece
    return found
