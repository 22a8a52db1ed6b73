"""Which of the questions that a model offers are worth asking: new ones that the passages can answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.documents import Document

from rag_kit.text.evidence.passages import PassageText, analyse, found_names
from rag_kit.text.evidence.terms import terms

MAX_CHARS = 300
_HELD = 0.5
_ALIKE = 0.8


def worth_asking(
    offered: Iterable[str], documents: Sequence[Document], asked: Iterable[str], most: int
) -> list[str]:
    """Leave out what was asked before, what repeats, and what the passages cannot answer.

    The passages can answer, as far as words tell: they hold each name of the question, and one of them holds at
    least half of its words by weight.
    """
    passages = [PassageText(i, d.page_content, _title(d)) for i, d in enumerate(documents, start=1)]
    terms_of = [set(terms(f"{one.title}\n{one.text}")) for one in passages]
    before = [set(terms(text)) for text in asked]
    kept: list[str] = []
    for text in (" ".join(item.split()) for item in offered):
        keys = set(terms(text))
        if len(kept) >= most or not keys or len(text) > MAX_CHARS:
            continue
        if any(len(keys & other) >= _ALIKE * len(keys | other) for other in before):
            continue
        question = analyse(text)
        total = sum(term.salience for term in question.terms) or 1.0
        best = max((sum(t.salience for t in question.terms if t.key in bag) for bag in terms_of), default=0.0)
        if best >= _HELD * total and found_names(question, passages) == 1.0:
            kept.append(text)
            before.append(keys)
    return kept


def _title(document: Document) -> str:
    return "\n".join(
        str(document.metadata[key]) for key in ("title", "heading") if document.metadata.get(key)
    )
