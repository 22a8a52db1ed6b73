"""What a grader fills in about support: of one statement by what it cites, or of several statements at once."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rag_kit.prompts.reflection import Support

MAX_REASON = 4_000
MAX_LABELS = 100


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


class SupportLabel(_Graded):
    """How far one of several statements is supported.

    Example:
        >>> SupportLabel(id=1, support="partial support").support
        'partial'
    """

    id: int = Field(description="The number of the statement.")
    support: Support = Field(
        description="'full' if the passages say all of it, 'partial' for a part of it, else 'none'."
    )


class SupportLabels(_Graded):
    """A label for each statement.

    Example:
        >>> SupportLabels(labels=[{"id": 1, "support": "none"}]).labels[0].support
        'none'
    """

    labels: Annotated[list[SupportLabel], _at_most(MAX_LABELS)] = Field(
        description="One entry a statement: its number, and how far it is supported."
    )
