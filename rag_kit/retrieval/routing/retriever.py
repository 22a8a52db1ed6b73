"""RoutingRetriever: ask the data sources that a question belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.steps import arun, is_control_flow, run
from rag_kit.errors import InvalidInputError, ModelOutputError, RagKitError
from rag_kit.retrieval.base import AskingRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Fusion, RrfK
from rag_kit.retrieval.fusion import Search, merge
from rag_kit.retrieval.routing.source import MAX_SOURCES, Choice, Route, Source, allowed_among, read_sources
from rag_kit.retrieval.routing.ways import Way, make_way
from rag_kit.retrieval.settings import RoutingSettings


class RoutingRetriever(AskingRetriever):
    """Send a question to the data sources that it belongs to.

    "None fits" is an answer: the result is then ``[]``. To tell it from a search that found nothing, call
    ``route(question)`` first, and pass what it gave with ``invoke(question, route=...)``, which decides nothing
    again; or set ``fallback`` or ``on_none``. If the router itself fails, all sources are searched, with a note.

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
        fallback: Name of the source to use if none fits.
        on_none: If none fits and there is no fallback: ``"empty"``, ``"all"`` sources, or ``"raise"``.
        allow: A function from the config to the list of names that may be used, empty for none.
        id_key: Metadata key of a document's id over all sources; without it, texts that differ are two documents.
        **more: ``fetch_k``, ``on_error``, ``deadline``...: see ``AskingRetriever``; ``fusion``: ``RewritingRetriever``.

    Raises:
        RagKitError: None fits (``on_none="raise"``), the router or a source fails (``on_error="raise"``), or all do.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> tea = BM25Retriever.from_texts(["Green tea wants 80 degrees."])
        >>> cars = BM25Retriever.from_texts(["Engines want oil."])
        >>> router = RoutingRetriever(sources={"tea": (tea, "Tea and hot water"), "cars": (cars, "Engines, oil")})
        >>> router.route("How hot should water be for green tea?").names
        ('tea',)
        >>> router.invoke("Who was the first pope?")
        []
    """

    call_arguments: ClassVar[frozenset[str]] = frozenset({"sources", "route"})

    sources: Annotated[Any, BeforeValidator(read_sources)]
    how: Any = None
    llm: Any = None
    embeddings: Any = None
    prompt: Any = None
    language: Literal["auto", "en", "zh"] = "auto"
    most: int | None = Field(default=1, ge=1)
    threshold: float | None = Field(default=None, ge=-1, le=1)
    fallback: str | None = None
    on_none: Literal["empty", "all", "raise"] = "empty"
    allow: Callable[[RunnableConfig], Any] | None = None
    fusion: Fusion = "rrf"
    rrf_k: RrfK = 60

    _way: Way = PrivateAttr()

    @classmethod
    def from_llm(
        cls, llm: Any, sources: Any, *, prompt: Any = None, k: int = 4, **settings: Unpack[RoutingSettings]
    ) -> Self:
        """Make a retriever that routes by a model; ``settings`` are any further arguments of the class."""
        return cls(how="model", llm=llm, sources=sources, prompt=prompt, k=k, **settings)

    @model_validator(mode="after")
    def _check_and_make_way(self) -> Self:
        if self.fallback is not None:
            allowed_among(self.sources, [self.fallback], "fallback")
        self._way = make_way(self.how, self.sources, dict(self))
        return self

    def route(
        self, question: str, config: RunnableConfig | None = None, *, sources: Sequence[str] | None = None
    ) -> Route:
        """Decide where a question goes, and search nothing; ``sources`` names those that this call may use.

        The route is false if the question goes nowhere. Raises as ``invoke``.
        """
        call = self._make_call(question, None, ensure_config(config), {})
        with call.bounds():
            return run(self._route(call, sources))

    async def aroute(
        self, question: str, config: RunnableConfig | None = None, *, sources: Sequence[str] | None = None
    ) -> Route:
        """Decide where a question goes without blocking the event loop; see ``route``."""
        call = self._make_call(question, None, ensure_config(config), {})
        with call.bounds():
            return await arun(self._route(call, sources))

    async def _route(self, call: Call, names: Any) -> Route:
        """Choose among the sources that this call may use; use all of them if the choice fails, or raise."""
        sources = self._allowed_sources(call.config, names)
        route = Route(call.query, self._way.name, "none")
        if not sources or not call.query.strip():
            return self._route_unfit(route, sources)
        limit = min(self.most or MAX_SOURCES, len(sources))
        try:
            choices, scores = await self._way.decide(call, sources, limit)
            chosen, notes = _known_choices(choices, sources, limit)
        except Exception as error:
            is_final = isinstance(error, InvalidInputError) or is_control_flow(error)
            if is_final or self.on_error == "raise":
                raise
            failure = describe_failure("route", error)
            notes = (f"degraded: {failure}; all sources are used",)
            every_source = _choose_all(sources, "the router failed")
            return replace(route, outcome="degraded", choices=every_source, notes=notes, failure=failure)
        route = replace(route, scores=scores, notes=notes)
        if chosen:
            return replace(route, outcome="chosen", choices=chosen)
        return self._route_unfit(route, sources)

    def _route_unfit(self, route: Route, sources: Sequence[Source]) -> Route:
        """Return the route of a question that no source fits: to the fallback, to all or nowhere, with a note."""
        note = "route: none of the sources fits the question"
        if any(source.name == self.fallback for source in sources):
            note += f"; the fallback {self.fallback!r} is used"
            fallback = Choice(self.fallback or "", None, "fallback")
            route = replace(route, outcome="fallback", choices=(fallback,))
        elif self.on_none == "raise":
            allowed = ", ".join(source.name for source in sources) or "none is allowed"
            raise RagKitError(
                f"None of the sources ({allowed}) fits the question. Give a fallback=, or on_none='empty' or 'all'."
            )
        elif self.on_none == "all" and sources:
            note += "; all are used"
            route = replace(route, outcome="all", choices=_choose_all(sources, "nothing fits"))
        return replace(route, notes=(*route.notes, note))

    def _allowed_sources(self, config: RunnableConfig, names: Any) -> list[Source]:
        """Return the sources that a call may use: those it names (``None``: all) that ``allow`` permits as well."""
        allowed = allowed_among(self.sources, names, "sources")
        if self.allow is None:
            return allowed
        permitted = self.allow(config)
        if permitted is None:  # a key that the config lacks must not open every source
            raise InvalidInputError(
                "allow gave None; it must give a list of names, an empty one for no source."
            )
        permitted = allowed_among(self.sources, permitted, "allow")
        return [source for source in allowed if source in permitted]

    def _check_route(self, route: Any, config: RunnableConfig, names: Any) -> Route:
        """Return the route that a caller passed; refuse one that leads to sources which this call may not use."""
        if not isinstance(route, Route):
            raise InvalidInputError(
                f"route is {type(route).__name__}; pass what route(question) of this retriever gave."
            )
        allowed = {source.name for source in self._allowed_sources(config, names)}
        if refused := [name for name in route.names if name not in allowed]:
            raise InvalidInputError(f"route leads to {refused}, which this call may not use.")
        return route

    def inner_retrievers(self) -> Sequence[Any]:
        """The retrievers of the sources."""
        return [source.retriever for source in self.sources]

    def searched(self) -> Sequence[Any]:
        """Return nothing: no source holds all the documents that are searched."""
        return ()

    async def _search(self, query: str, call: Call) -> list[Document]:
        names, decided = call.arguments.get("sources"), call.arguments.get("route")
        if decided is None:
            route = await self._route(call, names)
        else:
            route = self._check_route(decided, call.config, names)
        for note in route.notes:
            call.note(note)
        if not route:
            call.report()
            return []
        by_name = {source.name: source for source in self.sources}
        searches = []
        for choice in route.choices:
            stage = {
                "stage": f"route:{route.how}",
                "retriever": self.get_name(),
                "source": choice.name,
                "source_score": choice.score,
                "reason": choice.reason,
                "outcome": route.outcome,
            }
            searches.append(Search(call.query, None, by_name[choice.name].retriever, route=stage))
        results = await call.search_all(searches, call.fetch(self.fetch_k))
        return self._merge(call, results)

    def _merge(self, call: Call, searches: list[Search]) -> list[Document]:
        """Join what the sources found, with the route in the provenance."""
        route = dict(searches[0].route)
        extra: dict[str, Any] = {"routed_to": [search.route["source"] for search in searches]}
        if len(searches) == 1:  # the route itself is the last stage
            searches = [replace(searches[0], route={})]
            extra = {name: route[name] for name in route if name not in ("stage", "retriever")}
        call.report()
        return merge(searches, call, alone=route["stage"], extra=extra)


def _known_choices(
    choices: Sequence[Choice], sources: Sequence[Source], max_choices: int
) -> tuple[tuple[Choice, ...], tuple[str, ...]]:
    """Return the choices that are sources, each once and at most ``max_choices``, and notes on the others."""
    names = {_fold_name(source.name): source.name for source in sources}
    known: dict[str, Choice] = {}
    unknown, notes = [], []
    for choice in choices:
        if name := names.get(_fold_name(choice.name)):
            known.setdefault(name, replace(choice, name=name))
        else:
            unknown.append(repr(choice.name[:40]))  # a model may write anything as a name
    if unknown:
        examples = ", ".join(unknown[:3])
        if not known:
            raise ModelOutputError(f"The router named {examples}, which is no source that may be searched.")
        notes.append(f"route: {examples} left out: no source that may be searched")
    if len(known) > max_choices:
        notes.append(f"route: {len(known)} sources chosen, the first {max_choices} kept")
    return tuple(known.values())[:max_choices], tuple(notes)


def _choose_all(sources: Sequence[Source], reason: str) -> tuple[Choice, ...]:
    return tuple(Choice(source.name, None, reason) for source in sources)


def _fold_name(name: str) -> str:
    """Return a name in lower case without quotes and stops at its ends, for models repeat names in other forms."""
    return name.strip(" \t\n\"'`“”‘’「」.。").casefold()
