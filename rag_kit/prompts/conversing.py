"""What a model fills in around a conversation: facts about the user, questions to ask next."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

MAX_LISTED = 64
_TEXTS = {"type": "array", "items": {"type": "string"}}


def _texts(value: Any) -> Any:
    """A validator: texts, empty ones left out; who asked judges each."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [line.strip(" -*\t") for line in value.splitlines()]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    if len(value) > MAX_LISTED:
        raise ValueError(f"has {len(value)} entries; at most {MAX_LISTED} are allowed")
    return [item.strip() for item in value if item.strip()]


_Texts = Annotated[list[str], BeforeValidator(_texts)]


class UserFacts(BaseModel):
    """What a user said about themselves; empty if nothing.

    Example:
        >>> UserFacts(facts=["The user lives in Bonn.", " "]).facts
        ['The user lives in Bonn.']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    facts: Annotated[_Texts, WithJsonSchema(_TEXTS)] = Field(
        description="Short sentences, each one lasting fact that the user stated; an empty list if there is none."
    )


class RelatedQuestions(BaseModel):
    """Questions that the user might ask next; empty if the passages answer no other.

    Example:
        >>> RelatedQuestions(queries=["How hot is the tea?"]).queries
        ['How hot is the tea?']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: Annotated[_Texts, WithJsonSchema(_TEXTS)] = Field(
        description="Questions that the passages answer, each complete in itself; an empty list if there is none."
    )
