"""The steps of one self-query call: construct, search, list, relax; each is noted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from langchain_core.documents import Document

from rag_kit.concurrency.bridge import blocking
from rag_kit.documents import Filter, combine_filters, compile_filter, with_provenance
from rag_kit.documents.provenance import peek_provenance, peek_score
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.query_construction.clauses import ConstructedQuery, Sort, relax_filter, show_filter
from rag_kit.query_construction.fields import Schema
from rag_kit.retrieval.call import Call, Job
from rag_kit.retrieval.fusion import Search, identify
from rag_kit.retrieval.inside import asks_several

_MAX_SORTED = 20_000
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")  # a Chinese character, or a word


class SelfQueryCall:
    """The steps of one call of a `SelfQueryRetriever`, its `owner`."""

    def __init__(self, owner: Any, call: Call) -> None:
        self.owner = owner
        self.call = call
        self._where: Filter | None = None
        self._listed: set[int] = set()

    async def steps(self) -> list[Document]:
        """Make the filter and search with it; as long as nothing is found, search with weaker filters."""
        call, k = self.call, self.call.k
        schema = self.owner.schema_
        if schema is None:  # read from rows that the caller may see
            schema = await call.do("schema", partial(self.owner._schema, call.filter, call.config))
        constructed = await self._construct(schema)
        where, by = constructed.filter, f"by {constructed.constructor}"
        call.note(f"filter, {by}: {show_filter(where)}" if where else f"no filter in the question, {by}")
        for repair in constructed.repairs:
            call.note(f"repaired: {repair}")
        requested = (constructed.limit if self.owner.enable_limit else None) or k
        limit = min(k, requested)
        if requested > k:
            call.note(f"{requested} documents were asked for; k={k} holds")
        documents = await self._find(constructed, where, limit)
        # a rewritten question is one of several searches: only the question itself shows that nothing passes
        if not documents and self.owner.relax and call.question == call.query:
            for weaker, dropped in relax_filter(where):
                documents = await self._find(constructed, weaker, limit)
                if documents:
                    call.note(f"relaxed: nothing passes the whole filter; dropped {dropped}")
                    break
        return self._add_stage(documents[:limit], constructed)

    async def _construct(self, schema: Schema) -> ConstructedQuery:
        """Turn the question into text and filter: by the model, or by rules if there is no model or it fails."""
        owner, call = self.owner, self.call
        if owner.has_model:
            ask_model = partial(owner._ask_model, call.question, schema, call.child("self_query"))
            job = Job("self_query", blocking(ask_model, "self_query"), ask_model)
            with call.before_search():
                # not timed: the structured call keeps the time-out of the request itself
                [outcome] = await call.side_by_side([job], timed=False)
            if outcome.error is None:
                return cast("ConstructedQuery", outcome.value)
            if owner.on_error == "raise" or isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            call.note_failure("self_query", outcome.error, "the filter was made by rules", unsearched=True)
        return cast("ConstructedQuery", owner._rules.construct(call.question, schema))

    async def _find(self, constructed: ConstructedQuery, where: Filter | None, limit: int) -> list[Document]:
        """Search under the caller's filter and `where`; list rows that pass if nothing is found, or text is lacking."""
        question = self.call.query
        try:
            self._where = combine_filters(self.call.filter, where)
        except FilterError as error:  # the two together are beyond the bounds of a filter
            self.call.note(f"degraded: the question's filter was left out: {error}")
            self._where = self.call.filter
        is_rewritten = question != self.call.question
        text = question if is_rewritten or self.owner.use_original_query else constructed.query
        if constructed.sort is not None:
            return await self._sort(text, constructed.sort, limit)
        documents: list[Document] = []
        for query in dict.fromkeys(query for query in (text, question) if query.strip()):
            documents = await self._search(query, limit)
            if documents:
                break
        # without a text the question is all filter, and asks for every row that passes
        if where is not None and len(documents) < limit and (not text or not documents):
            listed = await self._list_rows(limit + len(documents)) or []
            documents = [*documents, *self._new_rows(listed, documents)][:limit]
        return documents

    def _new_rows(self, listed: list[Document], searched: list[Document]) -> list[Document]:
        """Return the listed rows without those that were found by search, also in a shortened form."""
        # several retrievers inside may number other documents alike; a single one may shorten those that it finds
        origin = self.owner.retriever if asks_several(self.owner.retriever, self.call.config) else None
        searches = [Search("", None, origin, documents=searched), Search("", None, documents=listed)]
        (searched_keys, listed_keys), _ = identify(searches, None)
        new = [doc for key, doc in zip(listed_keys, listed, strict=True) if key not in searched_keys]
        return [doc for doc in new if not any(_shortens(one, doc) for one in searched)]

    async def _sort(self, text: str, sort: Sort, limit: int) -> list[Document]:
        """Return the first documents by a field: of all rows that pass, or, with a text, of the best of a search."""
        candidates = None if text else await self._list_rows(_MAX_SORTED + 1)
        if candidates is None:
            depth = self.owner.fetch_k or max(100, 10 * self.call.k)
            candidates = await self._search(text or self.call.query, max(depth, limit))
            among = f"the {len(candidates)} best"
        elif len(candidates) > _MAX_SORTED:
            among = f"the first {_MAX_SORTED:,} that pass, in the order of the collection"
        else:
            among = f"all {len(candidates)} that pass"
        self.call.note(f"sorted by {sort.field} among {among}")
        sortable = [doc for doc in candidates[:_MAX_SORTED] if _sort_key(doc, sort) is not None]
        sortable.sort(key=partial(_sort_key, sort=sort), reverse=sort.descending)
        return sortable[:limit]

    async def _search(self, query: str, k: int) -> list[Document]:
        """Search the inner retriever, and drop documents that do not pass the filter: it may have ignored that."""
        documents = await self.call.search(self.owner.retriever, query, k, self._where)
        passes = compile_filter(self._where)
        return [doc for doc in documents if passes(doc.metadata)]

    async def _list_rows(self, limit: int) -> list[Document] | None:
        """List rows that pass, in the collection's order; ``None`` if rows cannot be listed."""
        try:
            if (source := self.owner._rows(self.call.config)) is None:
                return None
            rows_that_pass = source.under(self._where)
        except FilterError as error:
            self.call.note(f"rows were not listed: {error}")
            return None
        reading = self.call.do("rows", partial(rows_that_pass.documents, limit))
        rows = await self.call.attempt("rows", reading, "they are not listed")
        # the provenance tells listed rows from those that were found
        self._listed.update(map(id, rows or ()))
        return rows

    def _add_stage(self, documents: Sequence[Document], constructed: ConstructedQuery) -> list[Document]:
        """Copy documents, with the query, its filter and the notes of the call in the provenance."""
        notes = self.call.report()
        stage = {
            **constructed.as_dict(),
            "stage": "self_query",
            "retriever": self.owner.get_name(),
            "query": self.call.query,
            "searched": constructed.query or self.call.query,
            "applied": self._where,
        }
        results = []
        for rank, doc in enumerate(documents, start=1):
            stage["how"] = "listed" if id(doc) in self._listed else "search"
            stage["notes"] = [*peek_provenance(doc).get("notes", []), *notes]
            results.append(with_provenance(doc, score=peek_score(doc), rank=rank, **stage))
        return results


def _shortens(one: Document, other: Document) -> bool:
    """Tell whether two documents have the same id, and one has the words of the other with some left out."""
    if not one.id or one.id != other.id:
        return False
    fewer, more = sorted((_WORD.findall(doc.page_content.lower()) for doc in (one, other)), key=len)
    remaining = iter(more)  # ``in`` takes words from it up to the one it finds, so the order must agree
    return all(word in remaining for word in fewer)


def _sort_key(doc: Document, sort: Sort) -> Any:
    """Return the sort key of a document's value, numbers before texts; ``None`` if it cannot be sorted."""
    value = doc.metadata.get(sort.field)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return isinstance(value, str), value
