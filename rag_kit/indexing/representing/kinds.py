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
_TAGS = ("topic", "type", "place", "person", "organisation", "language")
_TAG_NAME = re.compile(r"[^\W\d]\w{0,31}")
_MAX_TAGS = 16
_MAX_TAG_VALUE = 80


@dataclass(frozen=True)
class _Form:
    """The limits of a kind, and how its texts become rows of the index.

    Attributes:
        count: How many texts a passage gets at most, unless the kind's argument says otherwise.
        longest: Characters of one text at most.
        by_rule: Whether the embedded model makes it too.
        joined: Between the texts, where they become one child; ``None`` for a child each.
    """

    count: int
    longest: int
    by_rule: bool = False
    joined: str | None = None


_ALLOWED = {
    "children": _Form(0, 0, by_rule=True),
    "summary": _Form(1, 2_000, by_rule=True),
    "questions": _Form(3, 500),
    "keywords": _Form(8, 100, by_rule=True, joined=", "),
    "qa": _Form(3, 1_000),
    "tags": _Form(_MAX_TAGS, 32 + 2 + _MAX_TAG_VALUE, by_rule=True, joined="; "),
    "translation": _Form(1, 20_000),
    "triples": _Form(10, 300),
    "situation": _Form(1, 300),
}
_FORMS = {
    **_ALLOWED,
    "cluster": _Form(1, 4_000, by_rule=True),
}  # a cluster of passages, for `build_raptor` alone
_CHILD_SIZE = 250


@dataclass(frozen=True)
class Kind:
    """A representation that is asked for.

    Attributes:
        spec: As written: ``"summary"``, ``"children:200"``; the value of the metadata field ``representation``.
        name: What stands before the colon.
        argument: What stands after it, or ``""``.
    """

    spec: str
    name: str
    argument: str = ""

    @property
    def by_rule(self) -> bool:
        """Whether it can be made without a language model."""
        return _FORMS[self.name].by_rule

    @property
    def is_searched_alone(self) -> bool:
        """Whether it is found by itself; else it is searched with the passage."""
        return self.name != "situation"

    @property
    def count(self) -> int:
        """Most texts for a passage; for ``children`` most characters of one."""
        usual = _CHILD_SIZE if self.name == "children" else _FORMS[self.name].count
        return int(self.argument) if self.argument.isdecimal() else usual

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Tags that are allowed."""
        return tuple(self.argument.split("+")) if self.argument else _TAGS

    def values(self, language: str) -> dict[str, str]:
        """The variables of the prompt besides the passages, for passages in a language."""
        other = {"zh": "English"}.get(language, "Chinese (中文)")
        return {
            "count": str(self.count),
            "names": ", ".join(self.tag_names),
            "target": {"en": "English", "zh": "Chinese (中文)"}.get(self.argument, self.argument or other),
        }

    def texts(self, reply: Any) -> list[str]:
        """The usable texts of a model's reply for one passage: cleaned, as many and as long as allowed."""
        form = _FORMS[self.name]
        given = [text for text in reply if isinstance(text, str)] if isinstance(reply, list) else []
        flat = [text if self.name == "translation" else " ".join(text.split()) for text in given]
        kept = list(dict.fromkeys(text for text in map(str.strip, map(clean_text, flat)) if text))
        if self.name == "tags":
            return [f"{name}: {value}" for name, value in self.tags(kept).items()]
        if self.name == "triples":
            split = [split_triple(text) for text in kept if len(text) <= form.longest]
            return [" | ".join(triple) for triple in split if triple][: self.count]
        return [text[: form.longest] for text in kept[: self.count]]

    def tags(self, texts: Sequence[str]) -> dict[str, str]:
        """The tags among some texts: names that are allowed, the first value of each."""
        allowed = {name.casefold(): name for name in self.tag_names}
        found: dict[str, str] = {}
        for text in texts:
            name, colon, value = text.replace("：", ":", 1).partition(":")
            known = allowed.get(name.strip().casefold())
            if known and colon and value.strip():
                found.setdefault(known, value.strip()[:_MAX_TAG_VALUE])
        return found

    def children(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are indexed."""
        joined = _FORMS[self.name].joined
        return list(texts) if joined is None or not texts else [joined.join(texts)]


def split_triple(text: str) -> tuple[str, str, str] | None:
    """Subject, relation and object of a text; ``None`` where it is no triple.

    Example:
        >>> split_triple("Ada Lovelace | wrote about | the Analytical Engine")
        ('Ada Lovelace', 'wrote about', 'the Analytical Engine')
    """
    parts = [part.strip() for part in text.replace("｜", "|").split("|")]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def kinds_of(represent: Sequence[str] | str) -> tuple[Kind, ...]:
    """Read names of representations.

    Args:
        represent: ``"children:SIZE"``, ``"summary"``, ``"questions:COUNT"``, ``"keywords:COUNT"``, ``"qa:COUNT"``,
            ``"tags:NAME+NAME"``, ``"translation:LANGUAGE"``, ``"triples:COUNT"``, ``"situation"``; a name alone takes
            its usual value.

    Raises:
        InvalidInputError: One is unknown, its argument is not allowed, or it is named twice.

    Example:
        >>> [(kind.name, kind.count) for kind in kinds_of(["summary", "children:200"])]
        [('summary', 1), ('children', 200)]
    """
    if isinstance(represent, str):
        represent = [part for part in represent.split(",") if part.strip()]
    if not all(isinstance(spec, str) for spec in represent):
        raise InvalidInputError(f"represent={represent!r} was given; give names such as 'summary'.")
    kinds = tuple(_kind(spec.strip()) for spec in represent)
    if len({kind.spec for kind in kinds}) < len(kinds) or sum(kind.name == "tags" for kind in kinds) > 1:
        raise InvalidInputError(f"represent={list(represent)!r} names a representation twice.")
    return kinds


def _kind(spec: str) -> Kind:
    name, colon, argument = spec.partition(":")
    if name not in _ALLOWED:
        raise InvalidInputError(
            f"represent={spec!r} is unknown; allowed: {', '.join(_ALLOWED)}{did_you_mean(name, _ALLOWED)}."
        )
    kind = Kind(spec, name, argument)
    if name == "children":
        fits, wanted = argument.isdecimal() and int(argument) >= 20, "characters, 20 or more: children:250"
    elif name in ("questions", "keywords", "qa", "triples"):
        fits, wanted = argument.isdecimal() and 1 <= int(argument) <= 20, f"a number from 1 to 20: {name}:3"
    elif name == "tags":
        names = argument.split("+")
        fits = len(names) <= _MAX_TAGS and all(map(_TAG_NAME.fullmatch, names))
        wanted = f"at most {_MAX_TAGS} names of letters, digits and _: tags:topic+place"
    elif name == "translation":
        fits = re.fullmatch(r"[^\W\d_][\w -]{1,29}", argument) is not None
        wanted = "a language: translation:zh, translation:German"
    else:
        fits, wanted = False, f"nothing: {name}"
    if colon and not fits:
        raise InvalidInputError(f"represent={spec!r} was given; after the colon goes {wanted}.")
    return kind
