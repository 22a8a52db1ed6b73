"""Routing to prompts: pick the template that suits a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, patch_config

from rag_kit.concurrency import Budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import arun, run
from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import LANGUAGES
from rag_kit.retrieval.routing.deciding import Decider, OnNone, Policy, make_router
from rag_kit.retrieval.routing.options import allowed_among
from rag_kit.retrieval.routing.route import NoRouteError, Route, RoutingError
from rag_kit.retrieval.routing.routed_prompt import RoutedPrompt, read_prompts

_SETTINGS = ("how", "llm", "embeddings", "prompt", "language", "pooling", "threshold", "margin")
_POLICY = ("fallback", "on_none", "on_error", "timeout", "deadline")
_CAPS = ("max_calls", "max_tokens")


class PromptRouter(Runnable[Any, PromptValue]):
    """Picks the prompt that suits a question, and fills it in; made by ``prompt_router``."""

    def __init__(
        self, prompts: Any, *, question_key: str = "question", name: str | None = None, **settings: Any
    ) -> None:
        allowed = (*_SETTINGS, *_POLICY, *_CAPS)
        if unknown := sorted(set(settings) - set(allowed)):
            raise InvalidInputError(f"Unknown arguments {unknown}; allowed: {', '.join(allowed)}.")
        self.name = name
        self.question_key = question_key
        self._language = settings.get("language", "auto")
        if self._language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={self._language!r} was given; allowed: 'auto', 'en', 'zh'.")
        self._caps = {key: settings.get(key) for key in _CAPS}
        Budget(**self._caps)
        router = make_router(**{key: settings[key] for key in _SETTINGS if key in settings})
        policy = Policy(**{key: settings[key] for key in _POLICY if key in settings})
        if policy.on_none == "all":
            raise InvalidInputError(
                "on_none='all' was given; only one prompt can be used: 'empty' or 'raise'."
            )
        self._decider = Decider(read_prompts(prompts), router, policy, "prompts")

    def route(
        self, question: str, config: RunnableConfig | None = None, *, prompts: Sequence[str] | None = None
    ) -> Route:
        """Decide which prompt suits a question.

        Args:
            question: The question.
            config: LangChain's config.
            prompts: The names that this call may use; ``None`` for all.

        Returns:
            The route; false if no prompt suits.

        Raises:
            NoRouteError: None suits (``on_none="raise"``).
            RagKitError: The router failed, and there is no fallback or ``on_error="raise"``.
        """
        return run(self._route(question, config, prompts), Budget(**self._caps))

    async def aroute(
        self, question: str, config: RunnableConfig | None = None, *, prompts: Sequence[str] | None = None
    ) -> Route:
        """As ``route``, natively asynchronous."""
        return await arun(self._route(question, config, prompts), Budget(**self._caps))

    def choose(
        self, question: str, config: RunnableConfig | None = None, *, prompts: Sequence[str] | None = None
    ) -> Any:
        """The template that suits a question, in its language; ``None`` if none does.

        Raises:
            As ``route``.
        """
        return self._template(self.route(question, config, prompts=prompts))

    async def achoose(
        self, question: str, config: RunnableConfig | None = None, *, prompts: Sequence[str] | None = None
    ) -> Any:
        """As ``choose``, natively asynchronous."""
        return self._template(await self.aroute(question, config, prompts=prompts))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> PromptValue:
        """Pick the prompt for ``input["question"]`` and fill it in with ``input``.

        Args:
            input: The values of the prompt, or the question alone.
            config: LangChain's config.
            **kwargs: ``prompts``: the names that this call may use.

        Raises:
            NoRouteError: No prompt suits.
            InvalidInputError: There is no question.
        """

        def run(values: Any, config: RunnableConfig) -> PromptValue:
            question, values = self._question(values)
            route = self.route(question, config, **kwargs)
            return self._filled(route).invoke(values, _marked(config, route))  # type: ignore[no-any-return]

        return self._call_with_config(cast(Any, run), input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> PromptValue:
        """As ``invoke``, natively asynchronous."""

        async def run(values: Any, config: RunnableConfig) -> PromptValue:
            question, values = self._question(values)
            route = await self.aroute(question, config, **kwargs)
            return await self._filled(route).ainvoke(values, _marked(config, route))  # type: ignore[no-any-return]

        return await self._acall_with_config(cast(Any, run), input, config)

    async def _route(self, question: Any, config: RunnableConfig | None, names: Any) -> Route:
        if not isinstance(question, str):
            raise InvalidInputError(f"A question must be a string, not {type(question).__name__}.")
        allowed = allowed_among(self._decider.options, names, "prompts")
        route = await self._decider.decide(question, allowed, ensure_config(config))
        if not route.degraded:
            return route
        # Of sources all can be asked; of prompts only one can be used.
        text = route.notes[-1].partition("; all")[0]
        if any(option.name == self._decider.policy.fallback for option in allowed):
            return self._decider.fallback(question, f"{text}; the fallback is used")
        raise RoutingError(f"No prompt could be chosen. {text.removeprefix('degraded: ')}. Give a fallback=.")

    def _question(self, values: Any) -> tuple[str, Any]:
        if isinstance(values, str):
            return values, {self.question_key: values}
        if isinstance(values, Mapping) and isinstance(values.get(self.question_key), str):
            return values[self.question_key], values
        raise InvalidInputError(
            f"The prompt router takes a question, or a dict with the question under {self.question_key!r}."
        )

    def _template(self, route: Route) -> Any:
        if not route:
            return None
        by_name = {option.name: option for option in self._decider.options}
        option = by_name[route.names[0]]
        assert isinstance(option, RoutedPrompt)
        return option.template(route.question, self._language)

    def _filled(self, route: Route) -> Any:
        template = self._template(route)
        if template is None:
            raise NoRouteError(
                "None of the prompts suits the question, and a chain cannot go on without one. Give a fallback=."
            )
        return template


def prompt_router(prompts: Any, **settings: Any) -> PromptRouter:
    """Make a runnable that picks the prompt that suits a question, for ``{"question": ...} | router | model``.

    Args:
        prompts: Names of prompt files (a list), or a mapping of name to template, to the name of a prompt file, to
            ``{"en": ..., "zh": ...}``, or to ``(template, description)`` or ``(template, description, examples)``.
        **settings: ``how``, ``llm``, ``embeddings``, ``prompt``, ``language``, ``threshold``, ``margin``,
            ``pooling``, ``fallback``, ``on_error``, ``timeout``, ``max_calls``, ``max_tokens``, ``deadline`` as for
            ``RoutingRetriever``; ``on_none``: ``"empty"`` or ``"raise"``; ``question_key``: where the question is
            in the input, by default ``"question"``. If the router fails, the fallback is used, and without one
            there is an exception.

    Returns:
        A runnable with ``route``, ``choose`` and their asynchronous forms besides.

    Raises:
        InvalidInputError: For arguments that are unknown or not allowed.
        PromptError: If a prompt file does not exist or is wrong.

    Example:
        >>> router = prompt_router(["tutor_physics", "tutor_maths"])
        >>> router.route("Why does a magnet attract iron?").names
        ('tutor_physics',)
        >>> print(router.invoke({"question": "How do I solve an equation?"}).to_messages()[0].content[:24])
        <task>tutor_maths</task>
    """
    return PromptRouter(prompts, **settings)


def route_prompt(
    question: str,
    prompts: Any,
    *,
    how: Any = None,
    config: RunnableConfig | None = None,
    on_none: OnNone = "empty",
    **settings: Any,
) -> Any:
    """Pick the prompt that suits a question.

    Use ``prompt_router`` for many questions: it reads and embeds the descriptions once.

    Args:
        question: The question.
        prompts: As for ``prompt_router``.
        how: ``"model"``, ``"similarity"``, ``"keywords"``, or a function of the question.
        config: LangChain's config.
        on_none: ``"empty"`` gives ``None`` if no prompt suits, ``"raise"`` raises.
        **settings: As for ``prompt_router``.

    Returns:
        The template, in the language of the question where there are several; ``None`` if none suits.

    Raises:
        NoRouteError: None suits (``on_none="raise"``).
        RagKitError: The router failed, and there is no fallback or ``on_error="raise"``.
        InvalidInputError: For arguments that are unknown or not allowed.

    Example:
        >>> route_prompt("怎样解这个方程？", ["tutor_physics", "tutor_maths"]).title
        'tutor_maths.zh'
        >>> route_prompt("Who wrote Emma?", ["tutor_physics", "tutor_maths"]) is None
        True
    """
    return PromptRouter(prompts, how=how, on_none=on_none, **settings).choose(question, config)


async def aroute_prompt(
    question: str,
    prompts: Any,
    *,
    how: Any = None,
    config: RunnableConfig | None = None,
    on_none: OnNone = "empty",
    **settings: Any,
) -> Any:
    """As ``route_prompt``, natively asynchronous."""
    # Prompt files are read on a thread: the event loop must not wait for them.
    router = await run_in_thread(partial(PromptRouter, prompts, how=how, on_none=on_none, **settings))
    return await router.achoose(question, config)


def _marked(config: RunnableConfig, route: Route) -> RunnableConfig:
    """The config for the template's own run, so that a trace says which prompt was picked."""
    metadata = {**config.get("metadata", {}), "routed_to": route.names[0], "routed_by": route.how}
    return {**patch_config(config), "metadata": metadata}
