"""Fields of the forms that models fill in: what they say to a model in both languages, texts and lists within bounds.

Lengths and counts are checked and stand in no JSON schema: several providers refuse one with ``minLength`` or
``maxLength`` in their strict mode, and every field is required for the same reason.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

MAX_LINE = 500
_TEXTS = WithJsonSchema({"type": "array", "items": {"type": "string"}})

#: What a field says to a model in English -> the same in Chinese.
CHINESE: dict[str, str] = {}


class Form(BaseModel):
    """Base of the forms: immutable, no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def said(english: str, chinese: str) -> Any:
    """A field that is described to a model in the language of the prompt."""
    CHINESE[english] = chinese
    return Field(description=english)


def text(limit: int, *, empty: bool = False) -> Any:
    """A text without blanks around it, of at most ``limit`` characters."""
    length = StringConstraints(strip_whitespace=True, min_length=0 if empty else 1, max_length=limit)
    return Annotated[str, length, WithJsonSchema({"type": "string"})]


def bounded(most: int, least: int = 0) -> Any:
    """A validator of lists: from ``least`` to ``most`` entries, whatever they are."""

    def check(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError("must be a list")
        if not least <= len(value) <= most:
            raise ValueError(f"has {len(value)} entries; {least} to {most} are allowed")
        return value

    return check


def lines(value: Any) -> Any:
    """A text as a list of its lines, a missing list as an empty one, and whatever else as it is."""
    if isinstance(value, str):
        return [line for line in (each.strip(" -*\t") for each in value.splitlines()) if line]
    return [] if value is None else value


def texts(most: int, least: int = 0) -> Any:
    """From ``least`` to ``most`` texts; one text is a list of its lines, empty ones are left out."""
    check = bounded(most, least)

    def read(value: Any) -> list[str]:
        value = lines(value)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError("must be a list of texts")
        found: list[str] = check([item.strip() for item in value if item.strip()])
        return found

    return Annotated[list[str], BeforeValidator(read), _TEXTS]


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
    schema = WithJsonSchema({"type": "array", "items": row})
    return Annotated[list[Any], BeforeValidator(bounded(most)), schema]


def one_line(value: Any) -> str:
    """A text on one line, cut to MAX_LINE characters; a missing one is empty."""
    return "" if value is None else " ".join(str(value).split())[:MAX_LINE]


Line = Annotated[str, BeforeValidator(one_line), WithJsonSchema({"type": "string"})]
"""One line, such as a reason; it may be empty, and a long one is cut."""
