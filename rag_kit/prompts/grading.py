"""What a judge fills in when it grades passages and nuggets, the small facts that an answer should hold."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rag_kit.prompts.reflection import Support

MAX_NUGGETS = 30
MAX_NUGGET = 500
MAX_REASON = 4_000
MAX_LABELS = 100


def _grade(value: Any) -> Any:
    """A validator: a whole number from 0 to 3, also as text."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2", "3"}:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in (0, 1, 2, 3):
        raise ValueError(f"is {value!r}; a whole number from 0 to 3 is allowed")
    return int(value)


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


class PassageRelevance(_Graded):
    """How relevant a passage is, on the scale of TREC's assessors.

    Example:
        >>> PassageRelevance(reason="It states the year.", grade="3").grade
        3
    """

    reason: Annotated[str, AfterValidator(lambda value: value.strip()[:MAX_REASON])] = Field(
        description="Why, in one short sentence."
    )
    grade: Annotated[
        int, BeforeValidator(_grade), WithJsonSchema({"type": "integer", "enum": [0, 1, 2, 3]})
    ] = Field(
        description="0: has nothing to do with the question; 1: related, answers nothing; 2: answers in part or "
        "hidden among other things; 3: is about the question and holds the answer."
    )


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
