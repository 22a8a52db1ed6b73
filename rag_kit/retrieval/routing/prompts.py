"""Routing to prompts: pick the template that suits a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import InvalidInputError, ModelOutputError, RagKitError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.retrieval.routing.retriever import RoutingRetriever
from rag_kit.retrieval.routing.source import Route, Source
from rag_kit.text import detect_language

_MAX_DESCRIPTION_CHARS = 4_000  # characters that a question is compared with


class PromptRouter(RunnableLambda[Any, PromptValue]):
    """A runnable that picks the prompt that suits a question and fills it in: ``{"question": ...} | router | model``.

    Args:
        prompts: Names of prompt files (a list), or a mapping of name to template, to the name of a prompt file, or to
            one of these in a tuple, before a description and examples.
        name: Its name in traces.
        **settings: ``how``, ``llm``, ``embeddings``, ``threshold``, ``fallback``...: as for ``RoutingRetriever``, and
            ``on_none``: ``"empty"`` or ``"raise"``. A failed decision takes the fallback; without one it raises.
    """

    def __init__(self, prompts: Any, *, name: str | None = None, **settings: Any) -> None:
        if settings.get("on_none") == "all" or settings.get("most", 1) != 1:
            raise InvalidInputError(
                "For only one prompt can be used, on_none is 'empty' or 'raise', and most is 1."
            )
        super().__init__(self._pick, afunc=self._apick, name=name or "PromptRouter")
        self._templates, sources = _read_prompts(prompts)
        # A template is a runnable as a retriever is; the router is asked for routes alone.
        self._router = RoutingRetriever(sources=sources, **settings)

    def route(self, question: str, config: RunnableConfig | None = None) -> Route:
        """Decide which prompt suits a question; false if none does."""
        return self._usable(self._router.route(question, config))

    async def aroute(self, question: str, config: RunnableConfig | None = None) -> Route:
        """Decide which prompt suits a question without blocking the event loop; false if none does."""
        return self._usable(await self._router.aroute(question, config))

    def _pick(self, values: Any, config: RunnableConfig) -> Any:
        return self._picked(self.route(_question_of(values), config))

    async def _apick(self, values: Any, config: RunnableConfig) -> Any:
        return self._picked(await self.aroute(_question_of(values), config))

    def _usable(self, route: Route) -> Route:
        """Return the route or, if the decision failed, one to the fallback; raise the failure if there is none."""
        if route.outcome != "degraded":
            return route
        fallback = tuple(choice for choice in route.choices if choice.name == self._router.fallback)
        if not fallback:
            raise ModelOutputError(f"No prompt could be chosen. {route.failure}. Give a fallback=.")
        notes = (f"degraded: {route.failure}; the fallback is used",)
        return replace(route, outcome="fallback", choices=fallback, notes=notes)

    def template(self, route: Route) -> Any:
        """Return the template that a route leads to, in the question's language; ``None`` if it leads nowhere."""
        if not route:
            return None
        templates, language = self._templates[route.names[0]], self._router.language
        if language == "auto":
            language = detect_language(route.question)
        return templates.get(language) or next(iter(templates.values()))

    def _picked(self, route: Route) -> Runnable[Any, PromptValue]:
        """Return the template for LangChain to fill in; the trace of its run says which prompt was picked."""
        if not route:
            raise RagKitError(
                "None of the prompts suits the question, and a chain cannot go on without one. Give a fallback=."
            )
        metadata = {"routed_to": route.names[0], "routed_by": route.how}
        picked: Runnable[Any, PromptValue] = self.template(route).with_config(metadata=metadata)
        return picked


def _question_of(values: Any) -> str:
    question = values.get("question") if isinstance(values, Mapping) else values
    if not isinstance(question, str):
        raise InvalidInputError(
            "The prompt router takes a question, or a dict with the question under 'question'."
        )
    return question


def route_prompt(
    question: str, prompts: Any, *, config: RunnableConfig | None = None, **settings: Any
) -> Any:
    """Return the template of the prompt that suits a question, in its language if there is one; None if none suits.

    ``prompts`` and ``settings`` are those of ``PromptRouter``, which is better for many questions: it reads and
    embeds the descriptions of the prompts once.

    Example:
        >>> route_prompt("怎样解这个方程？", ["tutor_physics", "tutor_maths"]).title
        'tutor_maths.zh'
        >>> route_prompt("Who wrote Emma?", ["tutor_physics", "tutor_maths"]) is None
        True
    """
    router = PromptRouter(prompts, **settings)
    return router.template(router.route(question, config))


async def aroute_prompt(
    question: str, prompts: Any, *, config: RunnableConfig | None = None, **settings: Any
) -> Any:
    """Return the template that suits a question without blocking the event loop; see ``route_prompt``."""
    # Prompt files are read on a thread: the event loop must not wait for them.
    router = await run_in_thread(partial(PromptRouter, prompts, **settings))
    return router.template(await router.aroute(question, config))


def _read_prompts(prompts: Any) -> tuple[dict[str, Mapping[str, Any]], list[Source]]:
    """Return the templates of each prompt by language ("": for any), and each prompt as a source to route to."""
    if isinstance(prompts, (list, tuple)) and all(isinstance(name, str) for name in prompts):
        prompts = {name: name for name in prompts}
    if not isinstance(prompts, Mapping):
        raise InvalidInputError(
            f"prompts is {type(prompts).__name__}; give a list of names of prompt files, or a mapping of name to "
            "prompt."
        )
    templates: dict[str, Mapping[str, Any]] = {}
    sources = []
    for name, value in prompts.items():
        # value: a template or the name of a file; or a tuple of that, a description and perhaps examples
        prompt, *description_and_examples = value if isinstance(value, tuple) else (value,)
        if isinstance(prompt, str):
            templates[name] = {language: load_prompt(prompt, language=language) for language in LANGUAGES}
        elif isinstance(prompt, BasePromptTemplate):
            templates[name] = {"": prompt}
        else:
            raise InvalidInputError(
                f"The prompt {name!r} is {type(prompt).__name__}; it must be a LangChain prompt or the name of a file."
            )
        if not description_and_examples:
            descriptions = {code: _description(template) for code, template in templates[name].items()}
            description_and_examples = [descriptions.get("", descriptions)]  # one text, or one a language
        sources.append(Source(name, next(iter(templates[name].values())), *description_and_examples))
    return templates, sources


def _description(template: Any) -> str:
    """Return a template's description; without one, the text of the template itself."""
    text = getattr(template, "description", "") or (template.metadata or {}).get("description")
    if not text:
        text = " ".join(part.pretty_repr() for part in getattr(template, "messages", [template]))
    return str(text)[:_MAX_DESCRIPTION_CHARS]
