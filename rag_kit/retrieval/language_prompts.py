"""Prompts that retrievers ask models by, one for each language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.text import detect_language


class LanguagePrompts:
    """A prompt for each language; read now, as no call may wait for files.

    ``prompt`` is one prompt, or one a language (``{"en": ..., "zh": ...}``), with the variables that ``needs`` names;
    ``None`` for the kit's own of that ``name``. ``language="auto"`` goes by the question.
    """

    def __init__(self, name: str, prompt: Any, needs: Sequence[str], language: str = "auto") -> None:
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={language!r} was given; allowed: 'auto', 'en', 'zh'.")
        if prompt is None:
            prompt = {tongue: load_prompt(name, language=tongue) for tongue in LANGUAGES}
        self.language = language
        self._prompts = dict(prompt) if isinstance(prompt, Mapping) else dict.fromkeys(LANGUAGES, prompt)
        for tongue, template in (self._prompts or {"": None}).items():
            takes = template.input_variables if isinstance(template, BasePromptTemplate) else None
            if tongue not in LANGUAGES or takes is None or not {*needs} <= {*takes}:
                raise InvalidInputError(
                    f"prompt holds {type(template).__name__} for {tongue!r}, which takes {takes}; it must be a "
                    f"LangChain prompt that takes {', '.join(needs)}, or one for each of: {', '.join(LANGUAGES)}."
                )

    def choose(self, question: str) -> Any:
        """The prompt in the language of a question, else in the one there is."""
        tongue = detect_language(question) if self.language == "auto" else self.language
        return self._prompts.get(tongue) or next(iter(self._prompts.values()))
