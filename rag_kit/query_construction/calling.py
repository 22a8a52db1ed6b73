"""One call of a self-query retriever: construct, search, list, relax; each step is noted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.structured_query import FilterDirective

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import Outcome, describe_failure
from rag_kit.concurrency.telling import tell_degraded
from rag_kit.documents import (
    Filter,
    add_note,
    combine_filters,
    compile_filter,
    document_keys,
    get_provenance,
    with_provenance,
)
from rag_kit.errors import BranchError, BudgetExceededError, FilterError, InvalidInputError
from rag_kit.query_construction.constructed import ConstructedQuery, Sort
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.ir import to_filter
from rag_kit.query_construction.relaxing import relaxed, show
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.rewrite_steps import Call, side_by_side

_log = logging.getLogger(__name__)
_SHARE_OF_MODEL = 0.75
_LEAST_SECONDS = 0.001
_MAX_SORTED = 20_000
_KEPT_SCHEMAS = 32


class SelfQueryCall:
    """The state of one call.

    Args:
        owner: The `SelfQueryRetriever` that was called.
        question: The user's question.
        request: What the call asks for.
    """

    def __init__(self, owner: Any, question: str, request: Request) -> None:
        self.owner = owner
        self.question = question
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        seconds = None if owner.deadline is None else owner.deadline * _SHARE_OF_MODEL
        self._model_budget = Budget(deadline=seconds)
        self.notes: list[str] = []
        self._where: Filter | None = None
        self._listed: dict[int, Document] = {}

    async def steps(self) -> list[Document]:
        """The whole call."""
        schema = await self._schema()
        made = await self._construct(schema)
        self._tell(made)
        asked = made.limit if self.owner.enable_limit else None
        limit = min(self.request.k, asked or self.request.k)
        if asked is not None and asked > self.request.k:
            self._note(f"{asked} documents were asked for; k={self.request.k} holds")
        found = await self._find(made, made.directive, limit)
        if not found:
            for directive, dropped in relaxed(made.directive, self.owner.relax, self.owner.max_relaxations):
                found = await self._find(made, directive, limit)
                if found:
                    self._note(f"relaxed: nothing passes the whole filter; dropped {dropped}")
                    break
        for note in self.notes:
            if note.startswith("degraded"):
                tell_degraded(_log, self.owner.get_name(), note)
        return self._finish(found[:limit], made)

    async def _schema(self) -> Schema:
        """The fields, with values of those rows only that the caller may see."""
        owner = self.owner
        if owner.schema_ is not None:
            given: Schema = owner.schema_
            return given
        where = owner._visible(self.request.filter, self.request.config)
        if where == owner._visible(owner.filter):
            found: Schema = owner._found
            return found
        # other threads may use the same dictionary: a copy is put in its place
        kept, key = owner._schemas, repr(where)
        schema: Schema | None = kept.get(key)
        if schema is None:
            call = Call("schema", partial(owner._discover, where), partial(owner._adiscover, where))
            result = await side_by_side([call], "raise", owner.timeout, self._left(), None)
            schema = result.values[0]
            owner._schemas = {**dict(list(kept.items())[1 - _KEPT_SCHEMAS :]), key: schema}
        return schema

    async def _construct(self, schema: Schema) -> ConstructedQuery:
        owner = self.owner
        if owner._model is not None:
            config = self.request.child("self_query")
            arguments = (self.question, schema, config)
            call = Call(
                "self_query",
                partial(owner._model.construct, *arguments),
                partial(owner._model.aconstruct, *arguments),
            )
            error: BaseException | None = BudgetExceededError("deadline", owner.deadline or 0)
            if self._model_budget.remaining_seconds() != 0:
                batch = side_by_side([call], "skip", None, None, None, self._model_budget)
                (outcome,) = (await batch).outcomes
                if outcome.ok and outcome.value is not None:
                    made: ConstructedQuery = outcome.value
                    return made
                error = outcome.error
            if error is not None and (owner.on_error == "raise" or isinstance(error, InvalidInputError)):
                raise error
            self._note(f"degraded: {describe_failure('self_query', error)}; the filter was made by rules")
        by_rules: ConstructedQuery = owner._rules.construct(self.question, schema)
        return by_rules

    def _tell(self, made: ConstructedQuery) -> None:
        if made.directive is not None:
            self._note(f"filter, by {made.constructor}: {show(made.directive)}")
        else:
            self._note(f"no filter in the question, by {made.constructor}")
        for repair in made.repairs:
            self._note(f"repaired: {repair}")

    async def _find(
        self, made: ConstructedQuery, directive: FilterDirective | None, limit: int
    ) -> list[Document]:
        """Search under a filter; where words find nothing, list what passes."""
        try:
            self._where = combine_filters(self.request.filter, to_filter(directive))
        except FilterError as error:  # the two together are beyond the bounds of a filter
            self._note(f"degraded: the question's filter was left out: {error}")
            self._where = self.request.filter
        text = self.question if self.owner.use_original_query else made.query
        if made.sort is not None:
            return await self._sorted(text, made.sort, limit)
        found: list[Document] = []
        for query in dict.fromkeys(query for query in (text, self.question) if query.strip()):
            found = await self._search(query, limit)
            if found:
                break
        # A question that is all filter asks for whatever passes; the rest of it only ranks.
        restricted = directive is not None
        if restricted and len(found) < limit and (not text or not found):
            listed = await self._list(limit + len(found))
            if listed is not None:
                keys = {key for of_one in document_keys([found], None) for key in of_one}
                more = [doc for doc in listed if document_keys([[doc]], None)[0][0] not in keys]
                found = [*found, *more[: limit - len(found)]]
        return found

    async def _sorted(self, text: str, sort: Sort, limit: int) -> list[Document]:
        candidates: list[Document] | None = None
        if not text:
            candidates = await self._list(_MAX_SORTED)
        if candidates is None:
            depth = self.owner.fetch_k or max(100, 10 * self.request.k)
            candidates = await self._search(text or self.question, max(depth, limit))
            self._note(f"sorted by {sort.field} among the {len(candidates)} best")
        else:
            self._note(f"sorted by {sort.field} among all {len(candidates)} that pass")
        known = [doc for doc in candidates if _sortable(doc.metadata.get(sort.field))]
        known.sort(key=lambda doc: _order(doc.metadata[sort.field]), reverse=sort.descending)
        return known[:limit]

    async def _search(self, query: str, k: int) -> list[Document]:
        owner = self.owner
        settings: dict[str, Any] = {"config": self.request.child("retriever"), "k": k, "filter": self._where}
        arguments = (owner.retriever, query)
        outcome = await self._do(
            owner.retriever.get_name(), call_retriever, acall_retriever, *arguments, **settings
        )
        if not outcome.ok:
            if isinstance(outcome.error, (InvalidInputError, BudgetExceededError)):
                raise outcome.error
            raise BranchError(
                f"The search of {owner.get_name()} failed. {describe_failure(outcome.name, outcome.error)}"
            ) from outcome.error
        passes = compile_filter(self._where)
        return [doc for doc in outcome.value or [] if passes(doc.metadata)]

    async def _list(self, limit: int) -> list[Document] | None:
        """Rows that pass, in the collection's order; ``None`` where rows cannot be listed."""
        source = self.owner._source
        if source is None:
            return None
        try:
            visible = self.owner._visible(self._where, self.request.config)
        except FilterError as error:
            self._note(f"rows were not listed: {error}")
            return None
        outcome = await self._do("rows", source.documents, source.adocuments, visible, limit)
        if not outcome.ok:
            self._note(f"degraded: {describe_failure('listing the rows that pass', outcome.error)}")
            return None
        rows: list[Document] = outcome.value or []
        self._listed.update((id(row), row) for row in rows)
        return rows

    def _finish(self, found: Sequence[Document], made: ConstructedQuery) -> list[Document]:
        if self.owner._model is not None:
            calls = self.budget.calls
            self._note(f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens")
        done = []
        for rank, doc in enumerate(found, start=1):
            before = get_provenance(doc)
            score = before.get("score")
            result = with_provenance(
                doc,
                score=score if isinstance(score, (int, float)) else None,
                rank=rank,
                stage="self_query",
                retriever=self.owner.get_name(),
                query=self.question,
                searched=made.query or self.question,
                **{key: value for key, value in made.as_dict().items() if key != "query"},
                applied=self._where,
                how="listed" if id(doc) in self._listed else "search",
            )
            for note in self.notes:
                result = add_note(result, note)
            done.append(result)
        return done

    async def _do(self, name: str, sync: Any, native: Any, *arguments: Any, **settings: Any) -> Outcome[Any]:
        """Do one thing within the time-out and the deadline."""
        call = Call(name, partial(sync, *arguments, **settings), partial(native, *arguments, **settings))
        result = await side_by_side([call], "skip", self.owner.timeout, self._left(), None)
        return result.outcomes[0]

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _left(self) -> float | None:
        if self.owner.deadline is None:
            return None
        left: float = self.owner.deadline - self._model_budget.seconds
        return max(_LEAST_SECONDS, left)


def _sortable(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _order(value: Any) -> tuple[int, Any]:
    """Numbers before texts, so that a mixed field sorts too."""
    return (1, value) if isinstance(value, str) else (0, value)
