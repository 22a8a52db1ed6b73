"""Ragas's own adaptation of its prompts to Chinese, by the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit.errors import ModelOutputError, RagKitError
from rag_kit.evaluation.ragas_metrics.adapter import Calls, ragas_llm

if TYPE_CHECKING:
    from rag_kit.evaluation.judge import Judge

LANGUAGES = {"zh": "chinese"}
"""Languages for which prompts are adapted, as Ragas names them; for any other they are sent as they are."""


def prompts_of(metric: Any) -> dict[str, Any]:
    """The prompts of a metric object, by attribute."""
    from ragas.prompt.metrics.base_prompt import BasePrompt

    return {name: value for name, value in vars(metric).items() if isinstance(value, BasePrompt)}


async def adapted_prompts(metric: Any, judge: Judge, language: str) -> dict[str, Any]:
    """The prompts of a metric in another language: the judge translates their examples, as Ragas's ``adapt`` asks it.

    The translations are replies of the judge, so its cache keeps them, as JSON, for this model, this prompt and this
    language. Prompts that Ragas writes without examples it cannot adapt; they are left out here and sent in English.

    Args:
        metric: An object of one of Ragas's classes.
        judge: Who translates.
        language: ``"zh"``.

    Raises:
        ModelError: If the judge cannot be reached, or gives another number of translations, twice.
    """
    calls = Calls(judge)
    found = {}
    for name, prompt in prompts_of(metric).items():
        if not getattr(prompt, "examples", None):
            continue
        for last in (False, True):
            try:
                found[name] = await prompt.adapt(LANGUAGES[language], ragas_llm(calls))
                break
            except RagKitError:
                raise
            except ValueError as error:
                if last:
                    raise ModelOutputError(
                        f"the judge could not translate Ragas's prompt {name!r} to {LANGUAGES[language]}: {error}; "
                        "with Judge(language='en') the English one is sent"
                    ) from error
    return found
