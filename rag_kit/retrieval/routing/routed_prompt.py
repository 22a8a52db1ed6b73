"""A prompt that questions can be routed to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.retrieval.routing.options import MAX_DESCRIPTION, Option
from rag_kit.text import detect_language


@dataclass(frozen=True, init=False, eq=False)
class RoutedPrompt(Option):
    """A prompt, and which questions it suits.

    Args:
        name: Its name.
        prompt: A template, one a language (``{"en": ..., "zh": ...}``), or the name of a prompt file.
        description: Which questions it suits; by default the description in its file, else its own text.
        examples: Questions that it suits.

    Raises:
        InvalidInputError: If a part is not allowed.

    Example:
        >>> sorted(RoutedPrompt("physics", "tutor_physics").templates)
        ['en', 'zh']
    """

    templates: Mapping[str, Any] = field(init=False)

    def __init__(
        self,
        name: str,
        prompt: Any,
        description: str | Mapping[str, str] | None = None,
        examples: Sequence[str] = (),
    ) -> None:
        if isinstance(prompt, str):
            prompt = {language: load_prompt(prompt, language=language) for language in LANGUAGES}
        templates = dict(prompt) if isinstance(prompt, Mapping) else {"": prompt}
        for language, template in templates.items():
            if language not in ("", *LANGUAGES) or not isinstance(template, BasePromptTemplate):
                raise InvalidInputError(
                    f"The prompt {name!r} is {type(template).__name__}; it must be a LangChain prompt, one for each "
                    f"of {', '.join(LANGUAGES)}, or the name of a prompt file."
                )
        if not templates:
            raise InvalidInputError(f"The prompt {name!r} is an empty mapping; give a LangChain prompt.")
        object.__setattr__(self, "templates", templates)
        described = {language: _description(template) for language, template in templates.items()}
        own: str | Mapping[str, str] = described.get("", described)
        super().__init__(name, own if description is None else description, examples)

    def template(self, question: str, language: str = "auto") -> Any:
        """The template in the language of a question, else the one there is."""
        tongue = detect_language(question) if language == "auto" else language
        return self.templates.get(tongue) or next(iter(self.templates.values()))


def read_prompts(given: Any) -> list[RoutedPrompt]:
    """Read prompts: names of prompt files, or a mapping of name to prompt.

    Raises:
        InvalidInputError: If it is something else.
        PromptError: If a prompt file does not exist or is wrong.
    """
    if isinstance(given, Mapping):
        return [_of_pair(name, value) for name, value in given.items()]
    if isinstance(given, (str, Runnable)) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"prompts is {type(given).__name__}; give a list of names of prompt files, or a mapping of name to prompt."
        )
    prompts = []
    for value in given:
        if not isinstance(value, (str, RoutedPrompt)):
            raise InvalidInputError(
                f"prompts holds {type(value).__name__}; a list holds names of prompt files or RoutedPrompt(...); "
                "give templates in a mapping of name to template."
            )
        prompts.append(value if isinstance(value, RoutedPrompt) else RoutedPrompt(value, value))
    return prompts


def _of_pair(name: Any, value: Any) -> RoutedPrompt:
    if isinstance(value, RoutedPrompt):
        if value.name != name:
            raise InvalidInputError(f"prompts[{name!r}] is called {value.name!r}; give one name.")
        return value
    if isinstance(value, tuple) and 1 <= len(value) <= 3:
        return RoutedPrompt(name, *value)
    return RoutedPrompt(name, value)


def _description(template: Any) -> str:
    """What a template says of itself."""
    known = getattr(template, "description", "") or (template.metadata or {}).get("description", "")
    if isinstance(known, str) and known.strip():
        return known
    messages = getattr(template, "messages", None)
    parts = [template] if messages is None else messages
    texts = [
        getattr(getattr(part, "prompt", part), "template", getattr(part, "content", "")) for part in parts
    ]
    return " ".join(text for text in texts if isinstance(text, str))[:MAX_DESCRIPTION]
