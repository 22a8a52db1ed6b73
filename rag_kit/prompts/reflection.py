"""What a model fills in when it reflects as in Self-RAG: one label each, out of a closed list.

The labels of one field begin with different letters, so that the first token of the one that a model wrote, and of
those that it might have written, tells them apart (log-probabilities).
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rag_kit.prompts.fields import Form


def _word(value: Any) -> Any:
    """A validator: case, brackets and a full stop around a label do not matter, true and false are yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strip().strip("[]\"'.。").strip().lower() if isinstance(value, str) else value


def _support(value: Any) -> Any:
    """A validator: the wordings of the paper are read too."""
    word = _word(value)
    if not isinstance(word, str):
        return word
    return next(
        (label for label in ("full", "partial") if word.startswith(label)), "none" if word in _NONE else word
    )


_NONE = ("no", "no support", "none", "unsupported", "contradictory", "no support / contradictory")


YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_word)]
Relevance = Annotated[Literal["relevant", "irrelevant"], BeforeValidator(_word)]
Support = Annotated[Literal["full", "partial", "none"], BeforeValidator(_support)]
Rating = Annotated[
    int,
    BeforeValidator(_word),
    Field(ge=1, le=5),
    WithJsonSchema({"type": "integer", "enum": [1, 2, 3, 4, 5]}),
]
_USEFUL = "How useful the statement is for the question: from 1 (not at all) to 5 (fully)."


class RetrieveNeeded(Form):
    """Whether the next part of an answer needs something to be looked up (Self-RAG's *Retrieve*).

    Example:
        >>> RetrieveNeeded(retrieve="Yes.").retrieve
        'yes'
    """

    retrieve: YesNo = Field(description="yes if the next sentence needs a look into the documents, else no.")


class Critique(Form):
    """The three labels of one part of an answer (Self-RAG's *IsRel*, *IsSup*, *IsUse*).

    Example:
        >>> Critique(relevance="relevant", support="Fully supported", usefulness="5").support
        'full'
    """

    relevance: Relevance = Field(description="Whether the passage helps to answer the question.")
    support: Support = Field(
        description="How much of the statement the passage supports: full, partial or none."
    )
    usefulness: Rating = Field(description=_USEFUL)


class Usefulness(Form):
    """The one label of a part of an answer that rests on no passage (Self-RAG's *IsUse*).

    Example:
        >>> Usefulness(usefulness=4).usefulness
        4
    """

    usefulness: Rating = Field(description=_USEFUL)
