"""What a judge fills in about citations and nuggets, the small facts that an answer should hold."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from rag_kit.prompts.reflection import Support

MAX_NUGGETS = 30
MAX_NUGGET = 500
MAX_REASON = 4_000
MAX_LABELS = 100


def _nugget(value: str) -> str:
    """A validator: on one line, not empty, not too long."""
    value = " ".join(value.split())
    if not 0 < len(value) <= MAX_NUGGET:
        raise ValueError(f"has {len(value)} characters; 1 to {MAX_NUGGET} are allowed")
    return value


def _word(value: Any) -> Any:
    """A validator: case and blanks around a label do not matter."""
    return value.strip().lower() if isinstance(value, str) else value


def _at_most(limit: int) -> Any:
    """A validator: at most `limit` entries."""

    def check(value: list[Any]) -> list[Any]:
        if len(value) > limit:
            raise ValueError(f"has {len(value)} entries; at most {limit} are allowed")
        return value

    return AfterValidator(check)


class _Graded(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CitedSupport(_Graded):
    """Whether the passages that a statement cites support it.

    Example:
        >>> CitedSupport(reason="The year differs.", support="No support").support
        'none'
    """

    reason: Annotated[str, AfterValidator(lambda value: value.strip()[:MAX_REASON])] = Field(
        description="Why, in one short sentence."
    )
    support: Support = Field(
        description="'full' if the passages say all of the statement, 'partial' for a part of it, else 'none'."
    )


class Nugget(_Graded):
    """One fact that an answer should or may hold.

    Example:
        >>> Nugget(text=" Jane Austen wrote  Emma ", importance="Vital").text
        'Jane Austen wrote Emma'
    """

    text: Annotated[str, AfterValidator(_nugget)] = Field(description="The fact, complete in itself.")
    importance: Annotated[Literal["vital", "okay"], BeforeValidator(_word)] = Field(
        description="'vital' if a good answer must hold it, 'okay' if it is good to have."
    )


class Nuggets(_Graded):
    """The facts of a text that answer a question; none if it answers nothing.

    Example:
        >>> len(Nuggets(nuggets=[{"text": "It opened in 1889.", "importance": "vital"}]).nuggets)
        1
    """

    nuggets: Annotated[list[Nugget], _at_most(MAX_NUGGETS)] = Field(
        description="The facts, the most important first."
    )


class NuggetLabel(_Graded):
    """Whether an answer holds one nugget.

    Example:
        >>> NuggetLabel(id=1, support="partial support").support
        'partial'
    """

    id: int = Field(description="The nugget's number.")
    support: Support = Field(
        description="'full' if the answer says it, 'partial' if it says a part of it, 'none' if it does not."
    )


class NuggetLabels(_Graded):
    """A label for each nugget.

    Example:
        >>> NuggetLabels(labels=[{"id": 1, "support": "none"}]).labels[0].support
        'none'
    """

    labels: Annotated[list[NuggetLabel], _at_most(MAX_LABELS)] = Field(
        description="One entry a nugget: its number, and whether the answer holds it."
    )
