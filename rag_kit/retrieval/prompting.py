"""The prompts of a part that asks a model: one a language, read when the part is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.text import detect_language


class LanguagePrompts:
    """The kit's own prompt of a name in each language, or the caller's; read now, as no call may wait for files.

    Args:
        name: Name of the kit's prompt.
        given: A prompt, one a language (``{"en": ..., "zh": ...}``), or ``None`` for the kit's own.
        needs: Variables that a prompt must take.
        language: ``"auto"`` goes by the question; else ``"en"`` or ``"zh"``.

    Raises:
        InvalidInputError: If a prompt is none, or lacks a variable, or the language is unknown.

    Example:
        >>> LanguagePrompts("step_back", None, ("question",)).choose("什么是检索？").metadata["language"]
        'zh'
    """

    def __init__(self, name: str, given: Any, needs: tuple[str, ...], language: str = "auto") -> None:
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={language!r} was given; allowed: 'auto', 'en', 'zh'.")
        self.language = language
        if given is None:
            self._prompts = {tongue: load_prompt(name, language=tongue) for tongue in LANGUAGES}
            return
        self._prompts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(LANGUAGES, given)
        given_prompts: Mapping[str, Any] = self._prompts or {"": None}
        for tongue, prompt in given_prompts.items():
            if tongue not in LANGUAGES or not isinstance(prompt, BasePromptTemplate):
                raise InvalidInputError(
                    f"prompt holds {type(prompt).__name__} for {tongue!r}; it must be a LangChain prompt, or "
                    f"one for each of: {', '.join(LANGUAGES)}."
                )
            if missing := [need for need in needs if need not in prompt.input_variables]:
                raise InvalidInputError(
                    f"The prompt takes {prompt.input_variables}; it must take {', '.join(map(repr, missing))} too."
                )

    def choose(self, question: str) -> Any:
        """The prompt in the language of a question, else in the one there is."""
        tongue = detect_language(question) if self.language == "auto" else self.language
        return self._prompts.get(tongue) or next(iter(self._prompts.values()))


def check_model(llm: Any) -> Runnable[Any, Any]:
    """See that something can be asked as a chat model.

    Raises:
        InvalidInputError: If it is no runnable, or a retriever.
    """
    if isinstance(llm, BaseRetriever):
        raise InvalidInputError(f"llm is the retriever {llm.get_name()}; from_llm takes the model first.")
    if not isinstance(llm, Runnable):
        raise InvalidInputError(
            f"llm is {type(llm).__name__}; it must be a chat model (or another runnable that takes messages)."
        )
    return llm
