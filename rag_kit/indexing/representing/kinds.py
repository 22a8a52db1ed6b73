"""The kinds of representations, and how a model's reply is read for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.documents import clean_text
from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.searched import REPRESENTATION as REPRESENTATION

#: What the passage itself is called where representations are named.
TEXT = "text"
#: A tag ``topic: fans`` becomes the metadata field ``tag_topic``, so that no tag takes another field's place.
TAG_PREFIX = "tag_"
_DEFAULT_TAGS = ("topic", "type", "place", "person", "organisation", "language")
_MAX_TAGS, _MAX_TAG_VALUE = 16, 80


@dataclass(frozen=True)
class _KindForm:
    """The form of a kind: how many texts, how long, and what may follow its name."""

    count: int
    max_chars: int = 0
    by_rule: bool = False  # whether the embedded model makes it too
    separator: str | None = None  # between the texts, if they become one child; else each is a child
    argument: tuple[str, str] = ("(?!)", "nothing")  # a pattern, and its explanation; "(?!)" never matches


_COUNT_ARGUMENT = (r"[1-9]|1\d|20", "a number from 1 to 20, such as 3")
_SIZE_ARGUMENT = (r"[2-9]\d|[1-9]\d{2,}", "20 or more characters, such as 250")
_LANGUAGE_ARGUMENT = (r"[^\W\d_][\w -]{1,29}", "a language, such as zh or German")
_NAME = r"[^\W\d]\w{0,31}"
_NAMES_ARGUMENT = (
    rf"{_NAME}(\+{_NAME}){{0,{_MAX_TAGS - 1}}}",
    f"at most {_MAX_TAGS} names of letters, digits and _, such as topic+place",
)
_USER_KINDS = {
    "children": _KindForm(250, by_rule=True, argument=_SIZE_ARGUMENT),
    "summary": _KindForm(1, 2_000, by_rule=True),
    "questions": _KindForm(3, 500, argument=_COUNT_ARGUMENT),
    "keywords": _KindForm(8, 100, separator=", ", argument=_COUNT_ARGUMENT),
    "qa": _KindForm(3, 1_000, argument=_COUNT_ARGUMENT),
    "tags": _KindForm(_MAX_TAGS, 200, by_rule=True, separator="; ", argument=_NAMES_ARGUMENT),
    "translation": _KindForm(1, 20_000, argument=_LANGUAGE_ARGUMENT),
    "triples": _KindForm(10, 300, argument=_COUNT_ARGUMENT),
    "situation": _KindForm(1, 300),
}
# a summary of a cluster of passages is for `build_raptor` alone
_ALL_KINDS = {**_USER_KINDS, "cluster": _KindForm(1, 4_000, by_rule=True)}


@dataclass(frozen=True)
class RepresentationKind:
    """A representation that is asked for."""

    spec: str  # as written, such as "children:200"; the value of the metadata field ``representation``
    name: str  # the part before the colon
    argument: str = ""  # the part after it

    @property
    def by_rule(self) -> bool:
        """Whether the kind needs no language model."""
        return _ALL_KINDS[self.name].by_rule

    @property
    def is_searched_alone(self) -> bool:
        """Whether the text is searched by itself; else it is searched with the passage."""
        return self.name != "situation"

    @property
    def count(self) -> int:
        """Most texts for a passage; for ``children`` most characters of one."""
        return int(self.argument) if self.argument.isdecimal() else _ALL_KINDS[self.name].count

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Tags that are allowed."""
        return tuple(self.argument.split("+")) if self.argument else _DEFAULT_TAGS

    def values(self, language: str) -> dict[str, str]:
        """Return the prompt's variables besides the passages, which are in ``language`` ("en" or "zh")."""
        names = {"en": "English", "zh": "Chinese (中文)"}
        target = self.argument or ("en" if language == "zh" else "zh")  # the code or name of a language
        full_name = names.get(target, target)
        return {"count": str(self.count), "names": ", ".join(self.tag_names), "target": full_name}

    def texts(self, reply: Any) -> list[str]:
        """Return the usable texts of a model's reply for one passage: cleaned, no more and no longer than allowed."""
        max_chars = _ALL_KINDS[self.name].max_chars
        cleaned: dict[str, None] = {}  # a dict as an ordered set
        for text in reply if isinstance(reply, list) else ():
            if isinstance(text, str):
                line = text if self.name == "translation" else " ".join(text.split())
                cleaned[clean_text(line).strip()] = None
        cleaned.pop("", None)
        texts = list(cleaned)
        if self.name == "tags":
            return [f"{name}: {value}" for name, value in self.tags(texts).items()]
        if self.name == "triples":
            triples = [split_triple(text) for text in texts if len(text) <= max_chars]
            texts = [" | ".join(triple) for triple in triples if triple]
        return [text[:max_chars] for text in texts[: self.count]]

    def tags(self, texts: Sequence[str]) -> dict[str, str]:
        """Read tags such as ``"topic: fans"``; return the first value of each allowed name."""
        allowed = {name.casefold(): name for name in self.tag_names}
        tags: dict[str, str] = {}
        for text in texts:
            written, _, value = text.replace("：", ":", 1).partition(":")
            name = allowed.get(written.strip().casefold())
            if name and value.strip():
                tags.setdefault(name, value.strip()[:_MAX_TAG_VALUE])
        return tags

    def children(self, texts: Sequence[str]) -> list[str]:
        """Return the texts as they are indexed: joined into one for some kinds."""
        separator = _ALL_KINDS[self.name].separator
        return list(texts) if separator is None or not texts else [separator.join(texts)]


def split_triple(text: str) -> tuple[str, str, str] | None:
    """Split a text into subject, relation and object at ``|``; ``None`` if it does not have all three."""
    parts = [part.strip() for part in text.replace("｜", "|").split("|")]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def kinds_of(represent: Sequence[str] | str) -> tuple[RepresentationKind, ...]:
    """Read the names of representations, in a list or joined by commas; a name alone takes its default value.

    They are ``"children:SIZE"``, ``"summary"``, ``"questions:COUNT"``, ``"keywords:COUNT"``, ``"qa:COUNT"``,
    ``"tags:NAME+NAME"``, ``"translation:LANGUAGE"``, ``"triples:COUNT"`` and ``"situation"``.
    """
    if isinstance(represent, str):
        represent = [part for part in represent.split(",") if part.strip()]
    kinds = tuple(_read_kind(str(spec).strip()) for spec in represent)
    if len({kind.spec for kind in kinds}) < len(kinds) or sum(kind.name == "tags" for kind in kinds) > 1:
        raise InvalidInputError(f"represent={list(represent)!r} names a representation twice.")
    return kinds


def _read_kind(spec: str) -> RepresentationKind:
    """Read one name with its value, such as ``"questions:3"``; raise InvalidInputError for a wrong one."""
    name, colon, argument = spec.partition(":")
    if name not in _USER_KINDS:
        raise InvalidInputError(
            f"represent={spec!r} is unknown; allowed: {', '.join(_USER_KINDS)}{did_you_mean(name, _USER_KINDS)}."
        )
    pattern, hint = _USER_KINDS[name].argument
    if colon and not re.fullmatch(pattern, argument):
        raise InvalidInputError(f"represent={spec!r} was given; what stands behind {name}: is {hint}.")
    return RepresentationKind(spec, name, argument)
