"""Gold-span recall: does the text that the reader is given really hold the answer?

A ranking metric counts whole documents. A reader (a person or a model) has room for a number of characters,
so here a query scores 1 when the gold answer lies wholly within one passage inside the first ``budget``
characters that came back, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_kit.evaluation.dataset import CorpusDocument, GoldAnswer, RetrievalDataset

if TYPE_CHECKING:
    from langchain_core.documents import Document

_VERDICTS = frozenset({"yes", "no", "maybe", "true", "false", "是", "否", "对", "错"})
"""Answers that judge and are no span; their letters are found in any text."""

Spans = dict[str, list[tuple[int, int]]]
"""Document id -> places of the answer in the document's content, end excluded."""


class SpanRecall:
    """The gold spans of a data set, and whether passages hold them.

    A span is where ``answer_starts`` says; without offsets it is any place in a gold document where an
    answer stands verbatim, not inside a longer word or number. Bare verdicts (yes, no, maybe) are no spans.

    Args:
        dataset: The data set.
        budget: Characters that a reader sees, counted over the passages in ranked order.

    Example:
        >>> from langchain_core.documents import Document
        >>> corpus = {"d": CorpusDocument("d", "", "The moon pulls the sea, so tides follow it.")}
        >>> gold = {"q": GoldAnswer("q", ("The moon",), ("d",))}
        >>> spans = SpanRecall(RetrievalDataset("x", corpus, {"q": "?"}, {"q": {"d": 1}}, gold), budget=20)
        >>> spans.hit("q", [("d", Document("The moon pulls the sea"))]), spans.hit("q", [])
        (1.0, 0.0)
    """

    def __init__(self, dataset: RetrievalDataset, *, budget: int = 3000) -> None:
        self.budget = budget
        self._corpus = dataset.corpus
        self._spans: dict[str, Spans] = {}
        for gold in dataset.qa.values():
            spans = find_spans(gold, dataset.corpus)
            if spans:
                self._spans[gold.id] = spans
        self._answered = sum(1 for gold in dataset.qa.values() if gold.answers)

    @property
    def name(self) -> str:
        """Name of the metric, with the budget."""
        return f"gold_span_recall@{self.budget}"

    @property
    def applies(self) -> bool:
        """Whether the set has spans: at least half of its answered questions have one."""
        return bool(self._spans) and 2 * len(self._spans) >= self._answered

    def queries(self, among: Sequence[str]) -> list[str]:
        """The queries of ``among`` that have a gold span."""
        return [query for query in among if query in self._spans]

    def hit(self, query: str, passages: Sequence[tuple[str, Document]]) -> float:
        """1.0 if a passage within the budget holds a gold span of the query, else 0.0.

        Args:
            query: The query's id.
            passages: ``(document id, passage)``, best first. The last one within the budget is cut.
        """
        left = self.budget
        for doc_id, passage in passages:
            if left <= 0:
                break
            text = passage.page_content
            visible = text[:left]
            left -= len(text)
            spans = self._spans[query].get(doc_id)
            if spans and self._holds(doc_id, passage, visible, spans):
                return 1.0
        return 0.0

    def _holds(self, doc_id: str, passage: Document, visible: str, spans: Sequence[tuple[int, int]]) -> bool:
        content = self._corpus[doc_id].content
        start = _locate(passage, content)
        if start is None:  # rewritten text: the words of the answer must be there
            return any(content[a:b] in visible for a, b in spans)
        return any(start <= a and b <= start + len(visible) for a, b in spans)


def _locate(passage: Document, content: str) -> int | None:
    """Where the passage stands in the document: by its own offset if that is right, else by search."""
    text = passage.page_content
    for key in ("start", "start_index"):
        start = passage.metadata.get(key)
        if isinstance(start, int) and start >= 0 and content.startswith(text, start):
            return start
    found = content.find(text)
    return found if found >= 0 else None


def find_spans(gold: GoldAnswer, corpus: Mapping[str, CorpusDocument]) -> Spans:
    """Where the answers stand in the content of the gold documents; see `SpanRecall`."""
    if gold.answer_starts:
        document = corpus[gold.doc_ids[0]]
        shift = document.text_offset
        pairs = zip(gold.answers, gold.answer_starts, strict=True)
        # Space at an answer's ends is no part of what must be read.
        return {
            document.id: [
                (shift + start + len(a) - len(a.lstrip()), shift + start + len(a.rstrip()))
                for a, start in pairs
            ]
        }
    spans: Spans = {}
    for answer in gold.answers:
        wanted = answer.strip()
        if not wanted or wanted.casefold() in _VERDICTS:
            continue
        pattern = re.compile(_edge(wanted[0], "<!") + re.escape(wanted) + _edge(wanted[-1], "!"))
        for doc_id in gold.doc_ids:
            found = [match.span() for match in pattern.finditer(corpus[doc_id].content)]
            if found:
                spans.setdefault(doc_id, []).extend(found)
    return spans


def _edge(character: str, look: str) -> str:
    """A boundary where the answer ends in a Latin letter or digit; Chinese has no spaces to look for."""
    return f"(?{look}[A-Za-z0-9])" if character.isascii() and character.isalnum() else ""
