"""The schema of the model's reply in text to SQL and to Cypher."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_STATEMENT = 20_000
MAX_REASON = 2_000


def _stripped(value: str) -> str:
    """Strip white space and a Markdown code fence; refuse a statement that is too long."""
    value = value.strip()
    if value.startswith("```"):
        value = value.strip("`").partition("\n")[2].strip()
    if len(value) > MAX_STATEMENT:
        raise ValueError(f"has {len(value)} characters; at most {MAX_STATEMENT} are allowed")
    return value


class DatabaseStatement(BaseModel):
    """One statement that reads, or none where the database cannot answer.

    Example:
        >>> DatabaseStatement(reason="Counts the rows.", statement=" SELECT count(*) FROM Track ").statement
        'SELECT count(*) FROM Track'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: Annotated[str, AfterValidator(lambda value: value.strip()[:MAX_REASON])] = Field(
        description="Which tables or labels answer the question and how, or why none can; one short sentence."
    )
    statement: Annotated[str, AfterValidator(_stripped)] = Field(
        description="One statement that reads; empty if the database cannot answer the question."
    )
