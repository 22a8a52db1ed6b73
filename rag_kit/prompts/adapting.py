"""What a model fills in to choose how a question is answered, and to go from one sub-question to the next."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

INTENTS = ("question", "chat", "unclear")
COMPLEXITIES = ("none", "single", "multi")
MAX_TEXT = 500


def _short(value: Any) -> Any:
    """A validator: text on one line, of bearable length; a missing one is empty."""
    return "" if value is None else " ".join(str(value).split())[:MAX_TEXT]


def _choice(names: tuple[str, ...]) -> Any:
    """A text out of a list. What another model writes is read too: who asked judges it."""
    return Annotated[
        str,
        BeforeValidator(lambda v: _short(v).lower()),
        WithJsonSchema({"type": "string", "enum": list(names)}),
    ]


class Classification(BaseModel):
    """What a question needs.

    Example:
        >>> Classification(intent="question", complexity="Multi", reason="Two facts.").complexity
        'multi'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    intent: _choice(INTENTS) = Field(  # type: ignore[valid-type]
        description="'question', 'chat' for talk, or 'unclear' if the meaning is unclear."
    )
    complexity: _choice(COMPLEXITIES) = Field(  # type: ignore[valid-type]
        description="'none' if nothing has to be looked up, 'single' for one search, 'multi' for several steps."
    )
    reason: Annotated[str, BeforeValidator(_short)] = Field(description="Why, in one short sentence.")


class NextHop(BaseModel):
    """The next sub-question, or that there is none.

    Example:
        >>> NextHop(done=True, query=None).query
        ''
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    done: bool = Field(description="True if what was found is enough, or nothing more can be found.")
    query: Annotated[str, BeforeValidator(_short), WithJsonSchema({"type": "string"})] = Field(
        description="The next question, complete in itself; empty if done."
    )
