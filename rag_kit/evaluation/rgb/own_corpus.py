"""Questions in RGB's form made of an evaluation set and its corpus, without any model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.rgb.counterfeit import wrong_answer
from rag_kit.evaluation.rgb.rules import Item, Part
from rag_kit.text import detect_language, fold, sentences

if TYPE_CHECKING:
    from rag_kit.evaluation.sets import EvaluationSet

_VERDICTS = frozenset({"yes", "no", "maybe", "true", "false", "是", "否", "对", "错", "不是", "没有"})
_LONG = 1500
_SEARCHED = 4
PARTS = "answer_parts"
"""Key of an example's metadata: a list with the alternatives of each part that a right answer needs."""

Skipped = dict[str, dict[str, int]]


def items_of(examples: EvaluationSet, count: int, seed: int) -> tuple[list[Item], Skipped]:
    """An item for each example and each kind that it can serve.

    True passages are those that the example names as relevant, long ones cut to the part around the answer. Noise are
    the passages that keyword search finds best for the question and that are neither relevant nor hold an answer.
    Questions whose answer stands in several documents ask for integration. For counterfactual passages the answer is
    replaced, wherever it stands, by another one of the same form.

    Args:
        examples: The set; it must have a corpus.
        count: Passages that a question is asked with.
        seed: Of the choice of wrong answers.

    Returns:
        The items, and how many examples could not be used for what reason.

    Raises:
        InvalidInputError: If the set has no corpus, or no example can be used.
    """
    if not examples.corpus:
        raise InvalidInputError(
            f"the set {examples.name!r} has no corpus; noise is drawn from it: give one with corpus="
        )
    texts = {passage.id: passage.text for passage in examples.corpus}
    search = _search(examples.corpus)
    skipped: Skipped = {}
    items: list[Item] = []
    pool = [answer for example in examples for answer in example.answers]
    for example in examples:
        found, reasons = _items(
            example, texts, search(example.question, count * _SEARCHED), pool, count, seed
        )
        items += found
        for ability, reason in reasons:
            counts = skipped.setdefault(ability, {})
            counts[reason] = counts.get(reason, 0) + 1
    if not items:
        raise InvalidInputError(
            f"no example of {examples.name!r} can be used; each needs short answers and relevant ids of the corpus"
        )
    return items, skipped


def _items(
    example: Example, texts: dict[str, str], near: Sequence[str], pool: Sequence[str], count: int, seed: int
) -> tuple[list[Item], Iterator[tuple[str, str]] | list[tuple[str, str]]]:
    parts = _parts(example)
    if reason := _unfit(parts):
        return [], [("all", reason)]
    variants = [each for part in parts for each in ((part,) if isinstance(part, str) else part)]
    gold = {key for key, grade in example.relevant.items() if grade > 0}
    groups = [
        (_around(texts[key], variants),) for key in example.relevant if key in gold and key in texts
    ] or [(_around(text, variants),) for text in example.reference_contexts]
    groups = [group for group in groups if _holds(group[0], variants)]
    if not groups:
        return [], [("all", "no relevant passage holds an answer")]
    negative = tuple(
        text[:_LONG]
        for key in near
        if key not in gold
        and not _holds(text := texts[key], variants)
        and text not in example.reference_contexts
    )[:count]
    language = example.tags.get("language") or detect_language(example.question)
    language = "zh" if language.startswith("zh") else "en"
    positive = tuple(group[0] for group in groups)
    basic = Item(example.id, language, example.question, parts, (positive,), negative)
    items, reasons = [basic], []
    if len(parts) > 1 and len(groups) > 1:
        items.append(
            Item(example.id, language, example.question, parts, tuple(groups), negative, kind="integration")
        )
    else:
        reasons.append(("information_integration", "the answer is in one passage"))
    wrong = wrong_answer(variants, pool, positive, f"{seed}:{example.id}")
    if wrong is None:
        reasons.append(("counterfactual_robustness", "no other answer of the same form"))
    else:
        fakes = tuple(_replaced(text, variants, wrong) for text in positive)
        items.append(
            Item(
                example.id, language, example.question, parts, (positive,), negative, fakes, "counterfactual"
            )
        )
    return items, reasons


def _parts(example: Example) -> tuple[Part, ...]:
    given = example.metadata.get(PARTS)
    if isinstance(given, list) and given:
        return tuple(part if isinstance(part, str) else tuple(part) for part in given)
    return (tuple(example.answers),) if example.answers else ()


def _unfit(parts: Sequence[Part]) -> str | None:
    if not parts:
        return "no short answers"
    for part in parts:
        for text in (part,) if isinstance(part, str) else part:
            if not text.strip():
                return "an answer is blank"
            if fold(text).strip() in _VERDICTS:
                return "the answer is a bare verdict"
    return None


def _holds(text: str, variants: Sequence[str]) -> bool:
    folded = fold(text)
    return any(fold(each) in folded for each in variants)


def _around(text: str, variants: Sequence[str]) -> str:
    """Whole sentences around the first place of an answer; a short passage as it is."""
    if len(text) <= _LONG:
        return text
    place = min((at for each in variants if (at := text.find(each)) >= 0), default=0)
    inside = [s for s in sentences(text) if s.end > place - _LONG // 2 and s.start < place + _LONG // 2]
    return text[inside[0].start : inside[-1].end][: 2 * _LONG] if inside else text[:_LONG]


def _replaced(text: str, variants: Sequence[str], wrong: str) -> str:
    for each in sorted(set(variants), key=len, reverse=True):
        text = text.replace(each, wrong)
    return text


class _search:  # noqa: N801 - used as a function
    """The ids of the passages that keyword search finds best."""

    def __init__(self, corpus: Sequence[Passage]) -> None:
        from langchain_core.documents import Document

        from rag_kit.indexing import BM25Index

        self._index = BM25Index.from_documents([Document(id=p.id, page_content=p.text) for p in corpus])

    def __call__(self, question: str, k: int) -> list[str]:
        return [str(document.id) for document, _ in self._index.search(question, k=k)]
