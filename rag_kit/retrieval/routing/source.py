"""Sources that a question can be routed to, each a retriever and what it is good for; and the route decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import LANGUAGES

MAX_SOURCES = 100
_MAX_NAME = 64  # characters
_MAX_PROMPT_EXAMPLES = 5  # of a source, in a prompt


@dataclass(frozen=True, eq=False)
class Source:
    """A data source: a retriever, and what it is good for.

    Args:
        name: Its name; stands in prompts, routes and provenance.
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        description: What it holds; one text, or one a language (``{"en": ..., "zh": ...}``).
        examples: Questions that belong to it.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["Green tea"])
        >>> Source("tea", words, "Leaves, pots, cups", ["How hot is the water?"]).texts
        ('tea: Leaves, pots, cups', 'How hot is the water?')
    """

    name: str
    retriever: Runnable[str, Any]
    description: str | Mapping[str, str] = ""
    examples: Sequence[str] = ()

    def __post_init__(self) -> None:
        name = self.name if isinstance(self.name, str) else ""
        if not 1 <= len(name) <= _MAX_NAME or name != name.strip() or not name.isprintable():
            raise InvalidInputError(
                f"The name {str(self.name)[:80]!r} is not allowed; it must be a text of 1 to {_MAX_NAME} characters "
                "without control or invisible ones, and without blanks at its ends."
            )
        if not isinstance(self.retriever, Runnable):
            raise InvalidInputError(
                f"The retriever of source {self.name!r} is {type(self.retriever).__name__}; it must be a LangChain "
                "retriever (or another runnable from a string to documents)."
            )
        valid = self.descriptions.keys() <= {"", *LANGUAGES} and not isinstance(self.examples, str)
        texts = (*self.descriptions.values(), *self.examples)
        if not valid or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError(
                f"Source {self.name!r} has the description {self.description!r:.80} and the examples "
                f"{self.examples!r:.80}; a description is a text, or one for each of the languages "
                f"{', '.join(LANGUAGES)}, and examples are a list of texts."
            )

    @property
    def descriptions(self) -> Mapping[str, str]:
        """The description in each language; under ``""`` if it is one for all."""
        return self.description if isinstance(self.description, Mapping) else {"": self.description}

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that questions are compared with."""
        described = [f"{self.name}: {text}" if text else self.name for text in self.descriptions.values()]
        return (*described, *self.examples)

    def line(self, language: str) -> str:
        """Return the source as one line of a prompt, so that no description can pose as another source."""
        text = self.descriptions.get(language) or next(iter(self.descriptions.values()), "")
        if self.examples:
            label = "例如：" if language == "zh" else "for example: "
            text += f" ({label}{'; '.join(self.examples[:_MAX_PROMPT_EXAMPLES])})"
        return f"- {json.dumps(self.name, ensure_ascii=False)}: {' '.join(text.split())}"


def read_sources(candidates: Any) -> tuple[Source, ...]:
    """Return sources from a list of ``Source``, or from a mapping of name to retriever, perhaps with a description."""
    if isinstance(candidates, Mapping):
        fields = {name: value if isinstance(value, tuple) else (value,) for name, value in candidates.items()}
        candidates = [Source(name, *values) for name, values in fields.items()]
    is_list = isinstance(candidates, Iterable) and not isinstance(candidates, Runnable)
    sources = list(candidates) if is_list else []
    if not sources or not all(isinstance(source, Source) for source in sources):
        raise InvalidInputError(
            f"sources={candidates!r:.80} was given; it must be a list of Source(name, retriever, description), or a "
            "mapping of name to retriever, (retriever, description) or (retriever, description, examples)."
        )
    if len(sources) > MAX_SOURCES:
        raise InvalidInputError(f"{len(sources)} sources were given; at most {MAX_SOURCES} are allowed.")
    names = [source.name for source in sources]
    if len({name.casefold() for name in names}) < len(names):
        raise InvalidInputError(f"Of {names} two are the same; names must differ.")
    return tuple(sources)


def allowed_among(sources: Sequence[Source], names: Any, argument: str) -> list[Source]:
    """Return the sources that an allow-list names (``None``: all), in their order; ``argument`` is its name."""
    if names is None:
        return list(sources)
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInputError(
            f"{argument}={names!r} was given; it must be a list of names, or None for all."
        )
    allowed = list(names)
    all_names = [source.name for source in sources]
    if unknown := [name for name in allowed if name not in all_names]:
        raise InvalidInputError(f"{argument} names {unknown}; there are: {', '.join(all_names)}.")
    return [source for source in sources if source.name in allowed]


@dataclass(frozen=True)
class Choice:
    """One source to go to: its name, how well it fits (``None`` without a number), and why."""

    name: str
    score: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Route:
    """The decision to which sources a question goes; false if it goes to none.

    ``how`` is the way of deciding: ``"model"``, ``"similarity"``, ``"keywords"`` or ``"function"``. ``outcome`` is
    ``"chosen"``; or, if nothing fits, ``"none"``, ``"fallback"`` or ``"all"``; or ``"degraded"``: the router failed,
    and all sources are used; ``failure`` says why. ``choices`` come best first, ``scores`` are those of all sources, if
    there are numbers.
    """

    question: str
    how: str
    outcome: Literal["chosen", "none", "fallback", "all", "degraded"]
    choices: tuple[Choice, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failure: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the choices, best first."""
        return tuple(choice.name for choice in self.choices)

    def __bool__(self) -> bool:
        return bool(self.choices)
