"""A data source that questions can be routed to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.routing.options import Option


@dataclass(frozen=True, init=False, eq=False)
class Source(Option):
    """A data source: a retriever, and what it is good for.

    Args:
        name: Its name; stands in prompts, routes and provenance.
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        description: What it holds; one text, or one a language (``{"en": ..., "zh": ...}``).
        examples: Questions that belong to it.

    Raises:
        InvalidInputError: If a part is not allowed.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> Source("tea", BM25Retriever.from_texts(["Green tea"]), "Leaves, pots, cups").name
        'tea'
    """

    retriever: Runnable[str, Any] = field(init=False)

    def __init__(
        self,
        name: str,
        retriever: Runnable[str, Any],
        description: str | Mapping[str, str] = "",
        examples: Sequence[str] = (),
    ) -> None:
        object.__setattr__(self, "retriever", retriever)
        super().__init__(name, description, examples)
        if not isinstance(retriever, Runnable):
            raise InvalidInputError(
                f"The retriever of source {name!r} is {type(retriever).__name__}; it must be a LangChain retriever "
                "(or another runnable from a string to documents)."
            )


def read_sources(given: Any) -> tuple[Source, ...]:
    """Read sources: a list of ``Source``, or a mapping of name to ``Source``-like parts.

    Raises:
        InvalidInputError: If it is something else.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["a"])
        >>> [source.description for source in read_sources({"tea": (words, "Leaves"), "cars": words})]
        ['Leaves', '']
    """
    if isinstance(given, Mapping):
        return tuple(_of_pair(name, value) for name, value in given.items())
    if isinstance(given, (str, Runnable)) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"sources is {type(given).__name__}; give a list of Source(name, retriever, description), or a mapping "
            "of name to retriever or (retriever, description)."
        )
    sources = tuple(given)
    for source in sources:
        if not isinstance(source, Source):
            raise InvalidInputError(
                f"sources holds {type(source).__name__}; each must be Source(name, retriever, description)."
            )
    return sources


def _of_pair(name: Any, value: Any) -> Source:
    if isinstance(value, Source):
        if value.name != name:
            raise InvalidInputError(f"sources[{name!r}] is called {value.name!r}; give one name.")
        return value
    if isinstance(value, Mapping):
        allowed = {"retriever", "description", "examples"}
        if "retriever" not in value or set(value) - allowed:
            raise InvalidInputError(
                f"sources[{name!r}] has the keys {sorted(map(str, value))}; allowed: retriever (needed), "
                "description, examples."
            )
        return Source(name, **value)
    if isinstance(value, tuple) and 1 <= len(value) <= 3:
        return Source(name, *value)
    return Source(name, value)
