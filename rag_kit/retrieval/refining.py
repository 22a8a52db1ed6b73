"""The base of retrievers that work on what another retriever found: rerank it, compress it."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Logic
from rag_kit.documents import add_note, document_keys
from rag_kit.retrieval.base import AskingRetriever
from rag_kit.retrieval.call import Call, plural
from rag_kit.retrieval.fields import InnerRetriever

_log = logging.getLogger(__name__)


class RefiningRetriever(AskingRetriever):
    """Base of the retrievers that ask another retriever and then work on its documents.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        **more: See ``AskingRetriever``. A failing inner retriever raises always.
    """

    model_share: ClassVar[float] = 1.0  # the search comes first
    other_names: ClassVar[Mapping[str, str]] = {"base_retriever": "retriever"}
    searches_together: ClassVar[bool] = True

    retriever: InnerRetriever

    @abstractmethod
    def _refine(self, documents: list[Document], call: Call) -> Logic[list[Document]]:
        """Work on documents, best first and without repeats; ``call.notes`` are added afterwards."""

    @abstractmethod
    def _fetch_size(self, k: int) -> int:
        """Return how many documents to ask the inner retriever for, without a ``fetch_k``."""

    def inner_retrievers(self) -> Sequence[Any]:
        """The one whose documents are worked on."""
        return [self.retriever]

    def _depth(self, call: Call) -> int:
        """Return how many documents to ask the inner retriever for."""
        return max(call.k, self._fetch_size(call.k) if self.fetch_k is None else self.fetch_k)

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search deep enough, drop repeats, refine, and add the notes of the call."""
        documents = await call.search(self.retriever, query, self._depth(call))
        distinct = self._distinct(documents, call)
        refined = (await self._refine(distinct, call)) if distinct else []
        notes = call.report()
        if not refined:  # no document is left that could hold them
            _log.info("%s: %s", self.get_name(), "; ".join(notes))
        return [reduce(add_note, notes, doc) for doc in refined]

    def _distinct(self, documents: Sequence[Document], call: Call) -> list[Document]:
        """Drop repeats: each would take a position, and be judged twice."""
        first: dict[str, Document] = {}
        for key, doc in zip(document_keys([documents], self.id_key)[0], documents, strict=True):
            first.setdefault(key, doc)
        if count := len(documents) - len(first):
            call.note(f"{plural(count, 'repeated passage')} of the inner retriever left out")
        return list(first.values())
