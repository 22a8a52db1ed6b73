"""A retriever that brings what the question at hand is to be answered from: with it, any graph can be tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from rag_kit.errors import InvalidInputError


@dataclass
class Given:
    """The passages of one question, and whether anybody asked for them."""

    documents: list[Document]
    read: bool = False


_given: ContextVar[Given | None] = ContextVar("rag_kit_given_passages", default=None)


class GivenPassages(BaseRetriever):
    """Brings the passages that `abilities` gives with a question, whatever is searched for.

    Example:
        >>> with give([Document("The moon pulls the sea.")]) as given:
        ...     found = GivenPassages().invoke("What moves the sea?")
        >>> [document.page_content for document in found], given.read
        (['The moon pulls the sea.'], True)
    """

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        given = _given.get()
        if given is None:
            raise InvalidInputError(
                "GivenPassages has passages only while abilities asks; use a retriever of yours elsewhere"
            )
        given.read = True
        return [document.model_copy(deep=True) for document in given.documents]


@contextmanager
def give(documents: list[Document]) -> Iterator[Given]:
    """Within it, `GivenPassages` brings these; each task has its own."""
    given = Given(documents)
    token = _given.set(given)
    try:
        yield given
    finally:
        _given.reset(token)
