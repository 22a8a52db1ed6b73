"""RoutingRetriever: ask the data sources that a question belongs to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from pydantic import PrivateAttr, field_validator, model_validator

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import FanOut
from rag_kit.concurrency.steps import arun, run
from rag_kit.concurrency.telling import tell_degraded
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError
from rag_kit.retrieval.base import Request, check_count
from rag_kit.retrieval.bounded import BudgetedRetriever
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.fusion import check_fusion
from rag_kit.retrieval.rewrite_steps import Call, side_by_side
from rag_kit.retrieval.routing.deciding import Decider, Policy, make_router, runnables_of, spent
from rag_kit.retrieval.routing.joining import FromSource, Joining, join
from rag_kit.retrieval.routing.options import allowed_among
from rag_kit.retrieval.routing.route import Route
from rag_kit.retrieval.routing.source import Source, read_sources

_log = logging.getLogger(__name__)


class RoutingRetriever(BudgetedRetriever):
    """Send a question to the data sources that it belongs to.

    "None fits" is an answer: the result is then ``[]``. To tell it from a search that found nothing, call
    ``route(question)`` first, and pass what it gave with ``invoke(question, route=...)``, which decides nothing
    again; or set ``fallback`` or ``on_none``. If the router itself fails, all sources are searched, and the notes
    say so ("degraded: ...").

    ``invoke(question, sources=["a", "b"])`` lets this call use these sources alone. The others are kept from the
    router, from the fallback and from every other way out, whatever the question or a description says. ``allow``
    does the same from the config, also where this retriever sits inside others.

    The stage ``"route:<how>"`` in the provenance holds ``source``, ``source_score`` and ``reason``.

    Args:
        sources: ``Source(name, retriever, description, examples)``, or a mapping of name to retriever,
            ``(retriever, description)`` or ``(retriever, description, examples)``.
        how: ``"model"``, ``"similarity"`` (of embeddings), ``"keywords"`` (no model), or a function of the question
            that gives a name, several names, a mapping of name to reason, or ``None``; it may be asynchronous.
            By default what ``llm`` or ``embeddings`` make possible, else keywords.
        llm: The model for ``"model"``.
        embeddings: The embedding model for ``"similarity"``; descriptions and examples are embedded once.
        prompt: A prompt of one's own for ``"model"``; takes ``question`` and ``sources``, and may take ``most``.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the question.
        most: Most sources for one question; ``None`` for all that fit.
        threshold: Least score that fits: by default 0.1 for ``"similarity"``, any word for ``"keywords"``.
        margin: How far a further source may be behind the best one; ``None`` for any distance.
        pooling: For ``"similarity"``: ``"mean"`` or ``"max"`` over a source's description and examples.
        fallback: Name of the source to use if none fits.
        on_none: If none fits and there is no fallback: ``"empty"``, ``"all"`` sources, or ``"raise"``.
        allow: A function from the config to the list of names that may be used, empty for none. Without one
            all may be used.
        fusion: How the lists of several sources are fused; a name from ``rag_kit.retrieval.fusion.FUSIONS``.
        rrf_k: The ``k`` of reciprocal rank fusion.
        k: Most documents to return.
        fetch_k: How many each source is asked for; ``None`` for ``k``. Never fewer than ``k``.
        filter: Metadata filter; reaches every source.
        on_error: ``"skip"`` what fails (router or source) and report it, or ``"raise"`` it. If all sources fail,
            that raises always.
        timeout: Seconds that one request of the router, and one search, may take.
        max_concurrency: Most searches at a time; ``None`` for the config's ``max_concurrency``, else all.
        max_calls: Most model calls, those of the sources included.
        max_tokens: Most tokens in and out; the call that goes over is kept, the next one is refused.
        deadline: Seconds for the whole. The router gets three quarters of them.
        id_key: Metadata key that identifies a document over all sources. Without it, documents of one id but
            different texts are kept apart, since each source numbers its own.

    Raises:
        InvalidInputError: For arguments that are unknown or not allowed.
        NoRouteError: On call, if none fits (``on_none="raise"``).
        RagKitError: On call, if the router fails (``on_error="raise"``).
        BranchError: On call, if a source fails (``on_error="raise"``) or all do.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> tea = BM25Retriever.from_texts(["Green tea wants 80 degrees."])
        >>> cars = BM25Retriever.from_texts(["Engines want oil."])
        >>> router = RoutingRetriever(sources={"tea": (tea, "Tea and hot water"), "cars": (cars, "Engines, oil")})
        >>> router.route("How hot should water be for green tea?").names
        ('tea',)
        >>> [doc.page_content for doc in router.invoke("How hot should water be for green tea?")]
        ['Green tea wants 80 degrees.']
        >>> router.invoke("Who was the first pope?")
        []
    """

    call_arguments: ClassVar[frozenset[str]] = frozenset({"sources", "route"})

    sources: Any
    how: Any = None
    llm: Any = None
    embeddings: Any = None
    prompt: Any = None
    language: Literal["auto", "en", "zh"] = "auto"
    most: int | None = 1
    threshold: float | None = None
    margin: float | None = None
    pooling: Literal["max", "mean"] = "mean"
    fallback: str | None = None
    on_none: Literal["empty", "all", "raise"] = "empty"
    allow: Callable[[RunnableConfig], Any] | None = None
    fusion: str = "rrf"
    rrf_k: float = 60

    _decider: Decider = PrivateAttr()

    @classmethod
    def from_llm(cls, llm: Any, sources: Any, *, prompt: Any = None, k: int = 4, **settings: Any) -> Self:
        """Make a retriever that routes by a model.

        Args:
            llm: The model.
            sources: The sources.
            prompt: A prompt of one's own.
            k: Most documents to return.
            **settings: Any further argument of the class.

        Raises:
            InvalidInputError: For arguments that are unknown or not allowed.
        """
        return cls(how="model", llm=llm, sources=sources, prompt=prompt, k=k, **settings)

    @field_validator("sources", mode="before")
    @classmethod
    def _sources_are_read(cls, value: Any) -> tuple[Source, ...]:
        return read_sources(value)

    @field_validator("most", mode="before")
    @classmethod
    def _most_is_allowed(cls, value: Any) -> Any:
        return None if value is None else check_count("most", value)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_fusion(self.fusion, self.rrf_k)
        router = make_router(
            self.how,
            llm=self.llm,
            embeddings=self.embeddings,
            prompt=self.prompt,
            language=self.language,
            pooling=self.pooling,
            threshold=self.threshold,
            margin=self.margin,
        )
        policy = Policy(self.most, self.fallback, self.on_none, self.on_error, self.timeout, self.deadline)
        self._decider = Decider(self.sources, router, policy, "sources")
        return self

    def route(
        self, question: str, config: RunnableConfig | None = None, *, sources: Sequence[str] | None = None
    ) -> Route:
        """Decide where a question goes, and search nothing.

        Args:
            question: The question.
            config: LangChain's config.
            sources: The names that this call may use; ``None`` for all.

        Returns:
            The route; false if the question goes nowhere.

        Raises:
            As ``invoke``.
        """
        return run(self._route(question, ensure_config(config), sources), self._budget())

    async def aroute(
        self, question: str, config: RunnableConfig | None = None, *, sources: Sequence[str] | None = None
    ) -> Route:
        """As ``route``, natively asynchronous."""
        return await arun(self._route(question, ensure_config(config), sources), self._budget())

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        budget = self._budget()
        return run(self._steps(query, request, budget), budget)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        budget = self._budget()
        return await arun(self._steps(query, request, budget), budget)

    def _budget(self) -> Budget:
        return Budget(max_calls=self.max_calls, max_tokens=self.max_tokens)

    async def _route(self, question: Any, config: RunnableConfig, names: Any) -> Route:
        if not isinstance(question, str):
            raise InvalidInputError(f"A question must be a string, not {type(question).__name__}.")
        return await self._decider.decide(question, self._allowed(config, names), config)

    def _allowed(self, config: RunnableConfig, names: Any) -> list[Source]:
        allowed = allowed_among(self.sources, names)
        if self.allow is None:
            return allowed
        given = self.allow(config)
        if given is None:  # a key that the config lacks must not open every source
            raise InvalidInputError(
                "allow gave None; it must give a list of names, an empty one for no source."
            )
        permitted = allowed_among(self.sources, given, "allow")
        return [source for source in allowed if source in permitted]

    def _given(self, route: Any, config: RunnableConfig, names: Any) -> Route:
        """A route that the caller has already: it must not lead where this caller may not go."""
        if not isinstance(route, Route):
            raise InvalidInputError(
                f"route is {type(route).__name__}; pass what route(question) of this retriever gave."
            )
        allowed = {source.name for source in self._allowed(config, names)}
        if refused := [name for name in route.names if name not in allowed]:
            raise InvalidInputError(f"route leads to {refused}, which this call may not use.")
        return route

    async def _steps(self, question: str, request: Request, budget: Budget) -> list[Document]:
        clock = Budget()
        names, given = request.extra.get("sources"), request.extra.get("route")
        config = request.child("route")
        if given is None:
            allowed = self._allowed(request.config, names)
            route = await self._decider.decide(question, allowed, config)
        else:
            route = self._given(given, request.config, names)
        if not route:
            return []
        by_name = {source.name: source for source in self.sources}
        chosen = [by_name[name] for name in route.names]
        result = await side_by_side(
            [self._search(source, question, request) for source in chosen],
            self.on_error,
            self.timeout,
            spent(clock, self.deadline),
            self.max_concurrency or request.config.get("max_concurrency"),
        )
        if not result.values:
            _raise_all_failed(self.get_name(), result)
        found = [
            FromSource(choice, source.retriever.get_name(), outcome.value or [])
            for choice, source, outcome in zip(route.choices, chosen, result.outcomes, strict=True)
            if outcome.ok
        ]
        notes = [f"degraded: {line}" for line in result.degradations]
        for note in notes:  # with no document there is no other place that could tell it
            tell_degraded(_log, self.get_name(), note)
        if budget.calls:
            plural = "" if budget.calls == 1 else "s"
            notes.append(f"model: {budget.calls} call{plural}, {budget.tokens} tokens")
        how = Joining(self.get_name(), request.k, self.fusion, self.rrf_k, self.id_key, notes)
        return join(found, route, how)

    def _search(self, source: Source, question: str, request: Request) -> Call:
        settings: dict[str, Any] = {
            "config": request.child(f"source_{source.name}"),
            "k": max(request.k, self.fetch_k or 0),
            "filter": request.filter,
        }
        return Call(
            f"source {source.name!r}",
            partial(call_retriever, source.retriever, question, **settings),
            partial(acall_retriever, source.retriever, question, **settings),
        )

    def _parts(self) -> Iterator[Runnable[Any, Any]]:
        yield from (source.retriever for source in self.sources)
        yield from runnables_of(self._decider.router)


def _raise_all_failed(name: str, result: FanOut[Any]) -> None:
    errors = [outcome.error for outcome in result.outcomes]
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    raise BranchError(f"All sources of {name} failed. {'; '.join(result.degradations)}") from errors[0]
