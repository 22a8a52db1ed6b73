"""The decision: ask the model, the function or the scores, and settle what follows if nothing fits or that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.runnables import Runnable

from rag_kit.concurrency.branches import describe_failure
from rag_kit.errors import InvalidInputError, ModelOutputError, RagKitError
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.routing.source import MAX_SOURCES, Choice, Route, Source
from rag_kit.retrieval.routing.ways import FunctionWay, KeywordWay, ModelWay, SimilarityWay

OnNone = Literal["empty", "all", "raise"]


Way = ModelWay | FunctionWay | KeywordWay | SimilarityWay


def make_way(how: Any, sources: Sequence[Source], settings: Mapping[str, Any]) -> Way:
    """What decides (the model, a function, or a score), by the arguments of ``RoutingRetriever``."""
    if how is None:
        usual = {"llm": "model", "embeddings": "similarity"}
        how = next((way for part, way in usual.items() if settings[part] is not None), "keywords")
    limits = settings["threshold"], settings["margin"]
    if how == "model":
        return ModelWay(settings["llm"], settings["prompt"], settings["language"])
    if how == "similarity":
        return SimilarityWay(sources, settings["embeddings"], settings["pooling"], *limits)
    if how == "keywords":
        return KeywordWay(sources, *limits)
    if callable(how) or isinstance(how, Runnable):
        return FunctionWay(how)
    raise InvalidInputError(
        f"how={how!r} was given; allowed: 'model', 'similarity', 'keywords', or a function of the question."
    )


async def decide(
    call: QueryCall,
    sources: Sequence[Source],
    way: Way,
    most: int | None,
    fallback: str | None,
    on_none: OnNone,
) -> Route:
    """Decide where a question goes, of the sources that this caller may use; arguments as of ``RoutingRetriever``.

    Raises:
        RagKitError: Nothing fits, and ``on_none="raise"``.
        RagKitError: The decision failed, and ``on_error="raise"``; ``InvalidInputError`` always.
    """
    scores: Mapping[str, float] = {}
    notes: list[str] = []
    if sources and call.query.strip():
        limit = min(most or MAX_SOURCES, len(sources))
        try:
            given, scores = await way.decide(call, sources, limit)
            chosen = _known(given, sources, limit, notes)
        except InvalidInputError:
            raise
        except Exception as error:
            if call.owner.on_error == "raise":
                raise
            note = f"degraded: {describe_failure('route', error)}; all sources are used"
            return Route(call.query, way.name, "degraded", _all(sources, "the router failed"), {}, (note,))
        if chosen:
            return Route(call.query, way.name, "chosen", tuple(chosen), dict(scores), tuple(notes))
    note = "route: none of the sources fits the question"
    outcome: Literal["fallback", "all", "none"] = "none"
    choices: tuple[Choice, ...] = ()
    if any(source.name == fallback for source in sources):
        outcome, choices = "fallback", (Choice(fallback or "", None, "fallback"),)
        note += f"; the fallback {fallback!r} is used"
    elif on_none == "raise":
        names = ", ".join(source.name for source in sources) or "none is allowed"
        raise RagKitError(
            f"None of the sources ({names}) fits the question. Give a fallback=, or on_none='empty' or 'all'."
        )
    elif on_none == "all" and sources:
        outcome, choices = "all", _all(sources, "nothing fits")
        note += "; all are used"
    return Route(call.query, way.name, outcome, choices, dict(scores), (*notes, note))


def _known(given: Sequence[Choice], sources: Sequence[Source], most: int, notes: list[str]) -> list[Choice]:
    """The choices that are sources, each once; the others are noted."""
    exact = {source.name: source.name for source in sources}
    loose = {_loose(name): name for name in exact}
    kept: dict[str, Choice] = {}
    unknown = []
    for choice in given:
        name = exact.get(choice.name) or loose.get(_loose(choice.name))
        if name is None:
            unknown.append(repr(choice.name[:40]))
        else:
            kept.setdefault(name, Choice(name, choice.score, choice.reason))
    if unknown:
        # What the router wrote may be anything, so it is cut short.
        said = ", ".join(unknown[:3])
        if not kept:
            raise ModelOutputError(f"The router named {said}, which is no source that may be searched.")
        notes.append(f"route: {said} left out: no source that may be searched")
    if len(kept) > most:
        notes.append(f"route: {len(kept)} sources chosen, the first {most} kept")
    return list(kept.values())[:most]


def _all(sources: Sequence[Source], reason: str) -> tuple[Choice, ...]:
    return tuple(Choice(source.name, None, reason) for source in sources)


def _loose(name: str) -> str:
    return name.strip(" \t\n\"'`“”‘’「」.。").casefold()
