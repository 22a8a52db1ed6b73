"""Fields of the forms that models fill in: texts and lists within bounds.

Lengths and counts are checked and stand in no JSON schema: several providers refuse one with ``minLength`` or
``maxLength`` in their strict mode, and every field is required for the same reason.
"""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

MAX_REASON = 4_000
MAX_LINE = 500


class Form(BaseModel):
    """Base of the forms: immutable, no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def text(limit: int, *, empty: bool = False) -> Any:
    """A text without blanks around it, of at most ``limit`` characters."""
    length = StringConstraints(strip_whitespace=True, min_length=0 if empty else 1, max_length=limit)
    return Annotated[str, length, WithJsonSchema({"type": "string"})]


def listed(item: Any, most: int, least: int = 0) -> Any:
    """A list of ``least`` to ``most`` texts of a kind that `text` makes."""
    schema = {"type": "array", "items": {"type": "string"}}
    return Annotated[list[item], Field(min_length=least, max_length=most), WithJsonSchema(schema)]


def one_line(value: Any) -> str:
    """A text on one line, cut to MAX_LINE characters; a missing one is empty."""
    return "" if value is None else " ".join(str(value).split())[:MAX_LINE]


def bounded(most: int, least: int = 0) -> Any:
    """A validator of lists: from ``least`` to ``most`` entries, whatever they are."""

    def check(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError("must be a list")
        if not least <= len(value) <= most:
            allowed = f"{least} to {most}" if least else f"at most {most}"
            raise ValueError(f"has {len(value)} entries; {allowed} are allowed")
        return value

    return check


def texts(most: int) -> Any:
    """At most ``most`` texts; one text is a list of its lines, empty ones are left out."""
    check = bounded(most)

    def read(value: Any) -> list[str]:
        if value is None:
            return []
        if isinstance(value, str):
            value = [line.strip(" -*\t") for line in value.splitlines()]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError("must be a list of texts")
        return [item.strip() for item in check(value) if item.strip()]

    return Annotated[
        list[str],
        BeforeValidator(read),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ]


def rows(most: int, **kinds: Any) -> Any:
    """At most ``most`` objects with these properties; who asked judges each, so that one bad one loses no other."""
    row = {
        "type": "object",
        "properties": {
            name: {"type": kind} if isinstance(kind, str) else kind for name, kind in kinds.items()
        },
        "required": list(kinds),
        "additionalProperties": False,
    }
    return Annotated[
        list[Any], BeforeValidator(bounded(most)), WithJsonSchema({"type": "array", "items": row})
    ]


def cut_text(value: str) -> str:
    """A reason: stripped, and cut where it is too long."""
    return value.strip()[:MAX_REASON]


Reason = Annotated[str, AfterValidator(cut_text)]
"""A reason that may be empty; a long one is cut."""
