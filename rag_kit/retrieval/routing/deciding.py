"""The decision: ask the model, the function or the scores, and settle what follows if nothing fits or that fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import Runnable

from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.concurrency.outcome import describe_failure
from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import acall_runnable
from rag_kit.prompts.routing import routes_among
from rag_kit.retrieval.prompting import LanguagePrompts, check_model
from rag_kit.retrieval.query_call import Call, QueryCall
from rag_kit.retrieval.routing.by_score import Decision, KeywordWay, SimilarityWay
from rag_kit.retrieval.routing.route import Choice, NoRouteError, Route, RoutingError
from rag_kit.retrieval.routing.source import MAX_SOURCES, Source
from rag_kit.text import detect_language

OnNone = Literal["empty", "all", "raise"]


class ModelWay:
    """Have a model choose, by names and descriptions; the schema of the answer lists the names that are allowed."""

    name = "model"

    def __init__(self, llm: Any, prompt: Any, language: str) -> None:
        self._llm = check_model(llm)
        self._prompts = LanguagePrompts("route", prompt, ("question", "sources"), language)

    async def decide(self, call: QueryCall, sources: Sequence[Source], most: int) -> Decision:
        """Ask the model."""
        prompt = self._prompts.choose(call.query)
        metadata = getattr(prompt, "metadata", None) or {}
        language = metadata.get("language") or detect_language(call.query)
        lines = "\n".join(source.line(language) for source in sources)
        values = {"question": call.query, "sources": lines, "most": most}
        form = routes_among(tuple(source.name for source in sources))
        (outcome,) = await call.ask(self._llm, prompt, [values], form, ["route"], form_holds=True)
        if outcome.error is not None:
            raise outcome.error
        answer: Any = outcome.value
        return [Choice(choice.name, None, choice.reason) for choice in answer.choices], {}


class FunctionWay:
    """Have a function of the question choose; it may be asynchronous, or a LangChain runnable."""

    name = "function"

    def __init__(self, func: Any) -> None:
        self._func = func

    async def decide(self, call: QueryCall, sources: Sequence[Source], most: int) -> Decision:
        """Call the function."""
        func, config = self._func, call.request.child("route")
        if isinstance(func, Runnable):
            sync: Any = partial(func.invoke, call.query, config)
            native: Any = partial(acall_runnable, func, call.query, config)
        else:
            sync = partial(call_function, func, call.query)
            native = partial(acall_function, func, call.query)
        (outcome,) = (await call.do_first([Call("function", sync, native)], call.owner.timeout)).outcomes
        given = call.value(outcome)
        given = [] if given is None else [given] if isinstance(given, str) else given
        named: list[Any] = [*given] if isinstance(given, Iterable) else [None]
        if not all(isinstance(name, str) for name in named):
            raise InvalidInputError(
                f"The routing function gave {given!r:.80}; it must give a name, a list of names, a mapping of name "
                "to reason, or None."
            )
        reasons = given if isinstance(given, Mapping) else {}
        return [Choice(name, None, str(reasons.get(name, ""))) for name in named], {}


Way = ModelWay | FunctionWay | KeywordWay | SimilarityWay


def make_way(how: Any, sources: Sequence[Source], settings: Mapping[str, Any]) -> Way:
    """What decides: the model, a function, or a score.

    Args:
        how: As for ``RoutingRetriever``.
        sources: All sources.
        settings: The arguments of ``RoutingRetriever`` that belong to one of them.

    Raises:
        InvalidInputError: If the way is unknown, or what it needs is missing.
    """
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
        NoRouteError: Nothing fits, and ``on_none="raise"``.
        RagKitError: The decision failed, and ``on_error="raise"``.
        InvalidInputError: It was asked wrongly; it would fail every time.
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
        raise NoRouteError(
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
            raise RoutingError(f"The router named {said}, which is no source that may be searched.")
        notes.append(f"route: {said} left out: no source that may be searched")
    if len(kept) > most:
        notes.append(f"route: {len(kept)} sources chosen, the first {most} kept")
    return list(kept.values())[:most]


def _all(sources: Sequence[Source], reason: str) -> tuple[Choice, ...]:
    return tuple(Choice(source.name, None, reason) for source in sources)


def _loose(name: str) -> str:
    return name.strip(" \t\n\"'`“”‘’「」.。").casefold()
