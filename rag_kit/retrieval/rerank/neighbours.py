"""The passages around a passage, added after reranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.documents import (
    Filter,
    combine_filters,
    compile_filter,
    document_key,
    get_provenance,
    with_provenance,
)
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.refine_call import RefineCall
from rag_kit.retrieval.rerank.base import both_ways
from rag_kit.retrieval.rewrite_steps import Call, Steps

_MAX_DEPTH = 16


def fetch_neighbours(
    func: Callable[[Document], Sequence[Document]], documents: Sequence[Document], call: RefineCall
) -> Steps[list[list[Document]]]:
    """The neighbours of each document, side by side, those left out that the filter does not let through.

    Args:
        func: Gives the neighbours of a document.
        documents: The documents.
        call: The call.

    Returns:
        One list a document. A failure is noted (``on_error="skip"``) or raised.
    """
    calls = []
    for number, doc in enumerate(documents, start=1):
        sync, native = both_ways(func, doc.model_copy(deep=True))
        calls.append(Call(f"neighbours of passage {number}", sync, native))
    outcomes = yield from call.do_all(calls)
    where = combine_filters(call.request.filter, static_filter(call.owner.retriever))
    passes = compile_filter(where) if where else None
    found: list[list[Document]] = []
    failures = []
    for outcome in outcomes:
        if not outcome.ok:
            if call.owner.on_error == "raise":
                raise call.failure(outcome)
            failures.append(outcome)
        found.append([] if not outcome.ok else _checked(outcome.value, passes))
    if failures:
        call.note(
            f"degraded: neighbours of {len(failures)} of {len(documents)} passages: {call.failure(failures[0])}"
        )
    return found


def as_neighbour(doc: Document, of: Document, call: RefineCall) -> Document:
    """A copy of a neighbour that says whose neighbour it is."""
    return with_provenance(
        doc,
        score=None,
        rank=int(get_provenance(of).get("rank") or 1),
        stage="neighbour",
        retriever=call.owner.get_name(),
        query=call.query,
        neighbour_of=document_key(of, call.owner.id_key),
    )


def _checked(given: Any, passes: Callable[[Mapping[str, Any]], bool] | None) -> list[Document]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(doc, Document) for doc in given):
        raise InvalidInputError(
            f"The function neighbours gave {type(given).__name__}; it must give a list of documents."
        )
    return [doc for doc in given if passes is None or passes(doc.metadata)]


def static_filter(retriever: Any, _depth: int = 0) -> Filter | None:
    """The filter that retrievers inside hold by themselves, as far as it is the filter of all of their documents.

    Documents that come past the retriever, such as neighbours, have to keep to it too.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> static_filter(BM25Retriever.from_texts(["a"], filter={"tenant": "t"}).with_retry())
        {'tenant': 't'}
    """
    if _depth > _MAX_DEPTH:
        return None
    if isinstance(retriever, RunnableBindingBase):
        return _both(retriever.kwargs.get("filter"), static_filter(retriever.bound, _depth + 1))
    if isinstance(retriever, VectorStoreRetriever):
        return _both(retriever.search_kwargs.get("filter"), None)
    if isinstance(retriever, RagKitRetriever):
        inner = getattr(retriever, "retriever", None)
        return _both(retriever.filter, None if inner is None else static_filter(inner, _depth + 1))
    return None


def _both(first: Any, second: Filter | None) -> Filter | None:
    try:
        return combine_filters(first if isinstance(first, Mapping) else None, second)
    except FilterError:  # the language of another store
        return second
