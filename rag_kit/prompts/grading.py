"""What a model fills in when it grades, ranks or stands for passages, or reflects on statements as in Self-RAG."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rag_kit.prompts.fields import MAX_REASON, Form, Reason, bounded, rows, text

MAX_NUMBERS = 1_000
MAX_LABELS = 100
_SAID = "'full' if the passages say all of {}, 'partial' for a part of it, else 'none'."


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


# The labels of one field begin with different letters, so that the first token of the one that a model wrote, and of
# those that it might have written, tells them apart (log-probabilities).
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


class Grade(Form):
    """The verdict of a grader.

    Example:
        >>> Grade(relevant=True, score=0.9, reason="Names the year.").relevant
        True
    """

    relevant: bool = Field(description="True if it passes, false if not.")
    score: Annotated[float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})] = Field(
        description="How sure that it passes: from 0 (surely not) to 1 (surely)."
    )
    reason: text(MAX_REASON) = Field(description="Why, in one short sentence.")  # type: ignore[valid-type]


class PassageGrades(Form):
    """Verdicts on several passages; one bad entry does not lose the others.

    Example:
        >>> PassageGrades(grades=[{"id": 1, "relevant": True, "score": 0.9, "reason": "Names it."}]).grades[0]["id"]
        1
    """

    grades: rows(MAX_NUMBERS, id="integer", relevant="boolean", score="number", reason="string") = Field(  # type: ignore[valid-type]
        description="One entry a passage: its id, whether it is relevant, a score from 0 to 1, and why."
    )


class PassageTexts(Form):
    """Texts that stand for passages in an index; one bad entry does not lose the others.

    Example:
        >>> PassageTexts(passages=[{"id": 1, "texts": ["Who built it?"]}]).passages[0]["texts"]
        ['Who built it?']
    """

    passages: rows(MAX_NUMBERS, id="integer", texts={"type": "array", "items": {"type": "string"}}) = Field(  # type: ignore[valid-type]
        description="One entry a passage: its id, and the texts written for it."
    )


def _numbers(value: Any) -> Any:
    """A validator: a list as it is, a text such as ``[2] > [1]`` as its numbers; the caller checks the entries."""
    if isinstance(value, str):
        value = re.findall(r"[+-]?\d+", value)
    if not isinstance(value, list):
        raise ValueError("must be a list of numbers")
    return bounded(MAX_NUMBERS)(value)


# Models number badly: repeats, gaps, "[3]" for 3. Refusing the whole list for one entry would lose the rest.
_Numbers = Annotated[
    list[Any],
    BeforeValidator(_numbers),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]


class RankedPassages(Form):
    """Numbers of passages, the most relevant first.

    Example:
        >>> RankedPassages(ranking=[2, 1]).ranking
        [2, 1]
    """

    ranking: _Numbers = Field(description="The numbers of all passages, the most relevant first.")


class ChosenSentences(Form):
    """Numbers of the sentences that matter; none if none does.

    Example:
        >>> ChosenSentences(sentences=[1, 4]).sentences
        [1, 4]
    """

    sentences: _Numbers = Field(description="The numbers of the sentences that matter; empty if none does.")


class CitedSupport(Form):
    """Whether the passages that a statement cites support it.

    Example:
        >>> CitedSupport(reason="The year differs.", support="No support").support
        'none'
    """

    reason: Reason = Field(description="Why, in one short sentence.")
    support: Support = Field(description=_SAID.format("the statement"))


class SupportLabel(Form):
    """How far one of several statements is supported.

    Example:
        >>> SupportLabel(id=1, support="partial support").support
        'partial'
    """

    id: int = Field(description="The number of the statement.")
    support: Support = Field(description=_SAID.format("it"))


class SupportLabels(Form):
    """A label for each statement.

    Example:
        >>> SupportLabels(labels=[{"id": 1, "support": "none"}]).labels[0].support
        'none'
    """

    labels: Annotated[list[SupportLabel], AfterValidator(bounded(MAX_LABELS))] = Field(
        description="One entry a statement: its number, and how far it is supported."
    )


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
