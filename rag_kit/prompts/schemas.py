"""What a model fills in: the Pydantic classes that prompt files name under ``output.schema``.

Lengths and counts are checked by validators, not by JSON-schema keywords: several providers refuse a schema with
``minLength`` or ``maxLength`` in their strict mode, and every field is required for the same reason.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rag_kit.prompts.conversing import RelatedQuestions, UserFacts
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.prompts.generating import GeneratedQuestions, QuestionCheck
from rag_kit.prompts.keywords import Keywords
from rag_kit.prompts.querying import DatabaseStatement
from rag_kit.prompts.reflection import CitedSupport, Critique, RetrieveNeeded, SupportLabels, Usefulness
from rag_kit.prompts.routing import Classification, NextHop, Routes

MAX_QUERY = 2_000
MAX_PASSAGE = 8_000
MAX_REASON = 4_000
MAX_ITEMS = 32
MAX_NUMBERS = 1_000


def _text(limit: int) -> Any:
    """A validator: stripped, not empty, at most `limit` characters."""

    def check(value: str) -> str:
        value = value.strip()
        if not value:
            raise ValueError("must not be empty")
        if len(value) > limit:
            raise ValueError(f"has {len(value)} characters; at most {limit} are allowed")
        return value

    return AfterValidator(check)


def _items(value: list[str]) -> list[str]:
    """A validator: one to MAX_ITEMS entries."""
    if not 1 <= len(value) <= MAX_ITEMS:
        raise ValueError(f"has {len(value)} entries; 1 to {MAX_ITEMS} are allowed")
    return value


def _up_to_most(value: list[str]) -> list[str]:
    """A validator: at most MAX_ITEMS entries."""
    if len(value) > MAX_ITEMS:
        raise ValueError(f"has {len(value)} entries; at most {MAX_ITEMS} are allowed")
    return value


def _unit(value: float) -> float:
    """A validator: a number from 0 to 1 (NaN fails the comparison too)."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"is {value}; a number from 0 to 1 is allowed")
    return value


class _Result(BaseModel):
    """Base of all result schemas: immutable, no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Query(_Result):
    """One search query or question.

    Example:
        >>> Query(query="  What is BM25? ").query
        'What is BM25?'
    """

    query: Annotated[str, _text(MAX_QUERY)] = Field(
        description="One question or search query, complete in itself."
    )


class Queries(_Result):
    """Several search queries, the most useful first.

    Example:
        >>> Queries(queries=["What is BM25?", "How does BM25 rank?"]).queries[1]
        'How does BM25 rank?'
    """

    queries: Annotated[list[Annotated[str, _text(MAX_QUERY)]], AfterValidator(_items)] = Field(
        description="Questions or search queries, each complete in itself, the most useful first."
    )


class SubQuestions(_Result):
    """The parts of a question that are to be answered first; empty if there is nothing to ask.

    Example:
        >>> SubQuestions(queries=[]).queries
        []
    """

    queries: Annotated[list[Annotated[str, _text(MAX_QUERY)]], AfterValidator(_up_to_most)] = Field(
        description="Questions, each about one thing and complete in itself, in the order in which they are "
        "to be answered; an empty list if no question is needed."
    )


class Passages(_Result):
    """Hypothetical passages: text as a document that answers the question might hold it.

    Example:
        >>> len(Passages(passages=["BM25 ranks by term frequency and rarity."]).passages)
        1
    """

    passages: Annotated[list[Annotated[str, _text(MAX_PASSAGE)]], AfterValidator(_items)] = Field(
        description="Short passages, each written as a document that answers the question might put it."
    )


class Grade(_Result):
    """The verdict of a grader.

    Example:
        >>> Grade(relevant=True, score=0.9, reason="Names the year.").relevant
        True
    """

    relevant: bool = Field(description="True if it passes, false if not.")
    score: Annotated[float, AfterValidator(_unit)] = Field(
        description="How sure that it passes: from 0 (surely not) to 1 (surely)."
    )
    reason: Annotated[str, _text(MAX_REASON)] = Field(description="Why, in one short sentence.")


def _numbers(value: Any) -> Any:
    """A validator: a list as it is, a text such as ``[2] > [1]`` as its numbers; the caller checks the entries."""
    if isinstance(value, str):
        value = re.findall(r"[+-]?\d+", value)
    if not isinstance(value, list):
        raise ValueError("must be a list of numbers")
    if len(value) > MAX_NUMBERS:
        raise ValueError(f"has {len(value)} entries; at most {MAX_NUMBERS} are allowed")
    return value


# Models number badly: repeats, gaps, "[3]" for 3. Refusing the whole list for one entry would lose the rest.
_Numbers = Annotated[
    list[Any],
    BeforeValidator(_numbers),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]


class RankedPassages(_Result):
    """Numbers of passages, the most relevant first.

    Example:
        >>> RankedPassages(ranking=[2, 1]).ranking
        [2, 1]
    """

    ranking: _Numbers = Field(description="The numbers of all passages, the most relevant first.")


class ChosenSentences(_Result):
    """Numbers of the sentences that matter; none if none does.

    Example:
        >>> ChosenSentences(sentences=[1, 4]).sentences
        [1, 4]
    """

    sentences: _Numbers = Field(description="The numbers of the sentences that matter; empty if none does.")


def _list(value: Any) -> list[Any]:
    """A validator: a list of at most MAX_NUMBERS entries, whatever they are; who asked judges each."""
    if not isinstance(value, list):
        raise ValueError("must be a list")
    if len(value) > MAX_NUMBERS:
        raise ValueError(f"has {len(value)} entries; at most {MAX_NUMBERS} are allowed")
    return value


_GRADED = {"id": "integer", "relevant": "boolean", "score": "number", "reason": "string"}


class PassageGrades(_Result):
    """Verdicts on several passages; one bad entry does not lose the others.

    Example:
        >>> PassageGrades(grades=[{"id": 1, "relevant": True, "score": 0.9, "reason": "Names it."}]).grades[0]["id"]
        1
    """

    grades: Annotated[
        list[Any],
        BeforeValidator(_list),
        WithJsonSchema(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in _GRADED.items()},
                    "required": list(_GRADED),
                    "additionalProperties": False,
                },
            }
        ),
    ] = Field(
        description="One entry a passage: its id, whether it is relevant, a score from 0 to 1, and why."
    )


class PassageTexts(_Result):
    """Texts that stand for passages in an index; one bad entry does not lose the others.

    Example:
        >>> PassageTexts(passages=[{"id": 1, "texts": ["Who built it?"]}]).passages[0]["texts"]
        ['Who built it?']
    """

    passages: Annotated[
        list[Any],
        BeforeValidator(_list),
        WithJsonSchema(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer"},
                        "texts": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["id", "texts"],
                    "additionalProperties": False,
                },
            }
        ),
    ] = Field(description="One entry a passage: its id, and the texts written for it.")


SCHEMAS: dict[str, type[BaseModel]] = {
    cls.__name__: cls
    for cls in (
        Query,
        Queries,
        SubQuestions,
        Passages,
        Grade,
        PassageGrades,
        PassageTexts,
        RankedPassages,
        ChosenSentences,
        SelfQuery,
        Routes,
        Classification,
        NextHop,
        UserFacts,
        RelatedQuestions,
        RetrieveNeeded,
        Critique,
        Usefulness,
        Keywords,
        CitedSupport,
        SupportLabels,
        GeneratedQuestions,
        QuestionCheck,
        DatabaseStatement,
    )
}
"""Every class that a prompt file may name under ``output.schema``."""
