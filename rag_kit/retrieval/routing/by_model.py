"""Routing by a language model that names sources and says why."""

from __future__ import annotations

from functools import partial
from typing import Any

from rag_kit.models import astructured_call, structured_call
from rag_kit.prompts.routing import routes_among
from rag_kit.retrieval.prompting import LanguagePrompts, check_model
from rag_kit.retrieval.rewrite_steps import Call
from rag_kit.retrieval.routing.route import Choice
from rag_kit.retrieval.routing.routers import Router, RouterCall, Ruling
from rag_kit.text import detect_language


class ModelRouter(Router):
    """Have a model choose, by names and descriptions.

    The JSON schema of the answer lists the names that are allowed, and any other name is dropped; sources that
    a caller may not use are neither in the schema nor in the prompt.

    Args:
        llm: A chat model, or another runnable that takes messages.
        prompt: As for ``RoutingRetriever``; takes ``question`` and ``sources``, and may take ``most``.
        language: ``"en"``, ``"zh"``, or ``"auto"`` for the language of the question.

    Raises:
        InvalidInputError: If a part is not allowed.
    """

    name = "model"

    def __init__(self, llm: Any, prompt: Any = None, language: str = "auto") -> None:
        self.llm = check_model(llm)
        self._prompts = LanguagePrompts("route", prompt, ("question", "sources"), language)

    async def decide(self, call: RouterCall) -> Ruling:
        """Ask the model; see ``Router.decide``."""
        prompt = self._prompts.choose(call.question)
        language = (getattr(prompt, "metadata", None) or {}).get("language")
        tongue = language or detect_language(call.question)
        values = {
            "question": call.question,
            "sources": "\n".join(option.line(tongue) for option in call.options),
            "most": call.most,
        }
        known = {key: value for key, value in values.items() if key in prompt.input_variables}
        form = routes_among(tuple(option.name for option in call.options))
        arguments: Any = (self.llm, prompt, known, form)
        settings: dict[str, Any] = {"timeout": call.timeout, "config": call.config}
        (answer,) = await call.do(
            Call(
                "route",
                partial(structured_call, *arguments, **settings),
                partial(astructured_call, *arguments, **settings),
            ),
            timed=False,
        )
        given = [Choice(choice.name, None, choice.reason) for choice in answer.choices]
        return Ruling(call.known(given))
