"""What a question can be routed to: a name, a description, example questions."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import LANGUAGES

MAX_OPTIONS = 100
MAX_NAME = 64
MAX_DESCRIPTION = 4_000
MAX_EXAMPLES = 50
MAX_EXAMPLE = 1_000
_SHOWN_EXAMPLES = 5


@dataclass(frozen=True)
class Option:
    """Something that a question can be routed to.

    Attributes:
        name: Its name.
        description: What it is good for; one text, or one a language (``{"en": ..., "zh": ...}``).
        examples: Questions that belong to it.

    Raises:
        InvalidInputError: If a part is not allowed.

    Example:
        >>> Option("manuals", "How to repair fans", ("Why is the fan loud?",)).texts
        ('manuals: How to repair fans', 'Why is the fan loud?')
    """

    name: str
    description: str | Mapping[str, str] = ""
    examples: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        for text in self.descriptions.values():
            _check_text(f"The description of {self.name!r}", text, MAX_DESCRIPTION, empty=True)
        if isinstance(self.examples, str) or not isinstance(self.examples, Sequence):
            raise InvalidInputError(f"examples of {self.name!r} must be a list of questions.")
        if len(self.examples) > MAX_EXAMPLES:
            raise InvalidInputError(
                f"{self.name!r} has {len(self.examples)} examples; at most {MAX_EXAMPLES} are allowed."
            )
        for text in self.examples:
            _check_text(f"An example of {self.name!r}", text, MAX_EXAMPLE)

    @property
    def descriptions(self) -> Mapping[str, str]:
        """The description of each language that has one; under ``""`` where it is one for all."""
        given = self.description
        if isinstance(given, Mapping):
            if unknown := [key for key in given if key not in LANGUAGES]:
                raise InvalidInputError(
                    f"The description of {self.name!r} has the languages {unknown}; allowed: "
                    f"{', '.join(LANGUAGES)}."
                )
            return given
        return {"": given}

    @property
    def texts(self) -> tuple[str, ...]:
        """All that questions are compared with."""
        described = [f"{self.name}: {text}" if text else self.name for text in self.descriptions.values()]
        return (*described, *self.examples)

    def line(self, language: str) -> str:
        """The option as one line of a prompt, so that no description can pose as another option."""
        known = self.descriptions
        text = known.get(language) or next(iter(known.values()), "")
        examples = "; ".join(_flat(example) for example in self.examples[:_SHOWN_EXAMPLES])
        parts = [_flat(text), f"({'例如：' if language == 'zh' else 'for example: '}{examples})"]
        described = " ".join(part for part in (parts if examples else parts[:1]) if part)
        return f"- {json.dumps(self.name, ensure_ascii=False)}: {described}"


O = TypeVar("O", bound=Option)  # noqa: E741


def check_options(options: Iterable[O], what: str) -> tuple[O, ...]:
    """See that there are options, not too many, and that no two names can be taken for each other.

    Raises:
        InvalidInputError: If not.
    """
    listed = tuple(options)
    if not 1 <= len(listed) <= MAX_OPTIONS:
        raise InvalidInputError(f"{len(listed)} {what} were given; 1 to {MAX_OPTIONS} are allowed.")
    seen: dict[str, str] = {}
    for option in listed:
        if other := seen.get(option.name.casefold()):
            raise InvalidInputError(
                f"Two {what} are called {other!r} and {option.name!r}; names must differ."
            )
        seen[option.name.casefold()] = option.name
    return listed


def allowed_among(options: Sequence[O], names: Any, what: str = "sources") -> list[O]:
    """The options that an allow-list names, in their own order.

    Args:
        options: All options.
        names: The names allowed; ``None`` for all, an empty list for none.
        what: What they are called in messages.

    Raises:
        InvalidInputError: If it is no list of names, or a name is unknown.
    """
    if names is None:
        return list(options)
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInputError(f"{what}={names!r} was given; it must be a list of names, or None for all.")
    wanted = list(names)
    known = [option.name for option in options]
    if unknown := [name for name in wanted if name not in known]:
        raise InvalidInputError(f"{what} names {unknown}; there are: {', '.join(known)}.")
    return [option for option in options if option.name in wanted]


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip() or len(name) > MAX_NAME:
        raise InvalidInputError(
            f"The name {str(name)[:80]!r} is not allowed; it must be a text of 1 to {MAX_NAME} characters without "
            "blanks at its ends."
        )
    if any(unicodedata.category(character)[0] == "C" or character in "\u2028\u2029" for character in name):
        raise InvalidInputError(f"The name {name!r} holds control or invisible characters; leave them out.")


def _check_text(what: str, text: Any, most: int, *, empty: bool = False) -> None:
    if not isinstance(text, str) or not (empty or text.strip()) or len(text) > most:
        given = f"{len(text)} characters long" if isinstance(text, str) else type(text).__name__
        raise InvalidInputError(f"{what} is {given}; it must be a text of at most {most} characters.")


def _flat(text: str) -> str:
    return " ".join(text.split())
