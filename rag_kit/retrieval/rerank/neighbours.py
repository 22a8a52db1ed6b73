"""The passages around a passage, added after reranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.concurrency.outcome import describe_failure
from rag_kit.documents import Filter, compile_filter, get_provenance, with_provenance
from rag_kit.documents.identity import document_key
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.query_call import Call, QueryCall
from rag_kit.retrieval.rerank.base import both_ways


async def fetch_neighbours(
    func: Callable[[Document], Sequence[Document]],
    documents: Sequence[Document],
    call: QueryCall,
    where: Filter | None,
) -> list[list[Document]]:
    """The neighbours of each document, side by side, those left out that the filter does not let through.

    Args:
        func: Gives the neighbours of a document.
        documents: The documents.
        call: The call.
        where: The filter.

    Returns:
        One list a document. A failure is noted (``on_error="skip"``) or raised.
    """
    calls = []
    for number, doc in enumerate(documents, start=1):
        sync, native = both_ways(func, doc.model_copy(deep=True))
        calls.append(Call(f"neighbours of passage {number}", sync, native))
    outcomes = (await call.do_all(calls)).outcomes
    passes = compile_filter(where) if where else None
    found: list[list[Document]] = []
    failures = []
    for outcome in outcomes:
        if not outcome.ok:
            if call.owner.on_error == "raise":
                call.value(outcome)
            failures.append(describe_failure(outcome.name, outcome.error))
        found.append([] if not outcome.ok else _checked(outcome.value, passes))
    if failures:
        call.note(f"degraded: neighbours of {len(failures)} of {len(documents)} passages: {failures[0]}")
    return found


def as_neighbour(doc: Document, of: Document, call: QueryCall) -> Document:
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
