"""What a model fills in: the Pydantic classes that prompt files name under ``output.schema``."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from rag_kit.prompts.fields import Form, Reason, listed, text, texts
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.prompts.generating import GeneratedQuestions, QuestionCheck
from rag_kit.prompts.grading import (
    ChosenSentences,
    CitedSupport,
    Critique,
    Grade,
    PassageGrades,
    PassageTexts,
    RankedPassages,
    RetrieveNeeded,
    SupportLabels,
    Usefulness,
)
from rag_kit.prompts.routing import Classification, NextHop, Routes

MAX_QUERY = 2_000
MAX_PASSAGE = 8_000
MAX_ITEMS = 32
MAX_LISTED = 64
MAX_KEYWORDS = 3
MAX_KEYWORD = 120
MAX_STATEMENT = 20_000
_Query: Any = text(MAX_QUERY)
_Passage: Any = text(MAX_PASSAGE)
_Statement: Any = text(MAX_STATEMENT, empty=True)
_BREAKS = re.compile(r"[,，、;；\r\n]+")


class Query(Form):
    """One search query or question.

    Example:
        >>> Query(query="  What is BM25? ").query
        'What is BM25?'
    """

    query: _Query = Field(description="One question or search query, complete in itself.")


class Queries(Form):
    """Several search queries, the most useful first.

    Example:
        >>> Queries(queries=["What is BM25?", "How does BM25 rank?"]).queries[1]
        'How does BM25 rank?'
    """

    queries: listed(_Query, MAX_ITEMS, 1) = Field(  # type: ignore[valid-type]
        description="Questions or search queries, each complete in itself, the most useful first."
    )


class SubQuestions(Form):
    """The parts of a question that are to be answered first; empty if there is nothing to ask.

    Example:
        >>> SubQuestions(queries=[]).queries
        []
    """

    queries: listed(_Query, MAX_ITEMS) = Field(  # type: ignore[valid-type]
        description="Questions, each about one thing and complete in itself, in the order in which they are "
        "to be answered; an empty list if no question is needed."
    )


class Passages(Form):
    """Hypothetical passages: text as a document that answers the question might hold it.

    Example:
        >>> len(Passages(passages=["BM25 ranks by term frequency and rarity."]).passages)
        1
    """

    passages: listed(_Passage, MAX_ITEMS, 1) = Field(  # type: ignore[valid-type]
        description="Short passages, each written as a document that answers the question might put it."
    )


def _keywords(value: Any) -> list[str]:
    """One line each, none empty, no more than MAX_KEYWORDS; a text is split at its commas."""
    if isinstance(value, str):
        value = _BREAKS.split(value)
    if not isinstance(value, list):
        raise ValueError("must be a list of keywords")
    words = [" ".join(str(word).split())[:MAX_KEYWORD] for word in value if isinstance(word, str | int)]
    kept = list(dict.fromkeys(word for word in words if word))[:MAX_KEYWORDS]
    if not kept:
        raise ValueError("must hold a keyword")
    return kept


class Keywords(Form):
    """What to type into a search engine: at most three keywords; more are cut.

    Example:
        >>> Keywords(keywords=["Henry Feilden", " occupation ", "England", "MP"]).keywords
        ['Henry Feilden', 'occupation', 'England']
    """

    keywords: Annotated[
        list[str],
        BeforeValidator(_keywords),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ] = Field(description="One to three keywords or names, the most important first.")


class UserFacts(Form):
    """What a user said about themselves; empty if nothing.

    Example:
        >>> UserFacts(facts=["The user lives in Bonn.", " "]).facts
        ['The user lives in Bonn.']
    """

    facts: texts(MAX_LISTED) = Field(  # type: ignore[valid-type]
        description="Short sentences, each one lasting fact that the user stated; an empty list if there is none."
    )


class RelatedQuestions(Form):
    """Questions that the user might ask next; empty if the passages answer no other.

    Example:
        >>> RelatedQuestions(queries=["How hot is the tea?"]).queries
        ['How hot is the tea?']
    """

    queries: texts(MAX_LISTED) = Field(  # type: ignore[valid-type]
        description="Questions that the passages answer, each complete in itself; an empty list if there is none."
    )


def _without_fence(value: str) -> str:
    """A statement without a Markdown code fence around it."""
    return value.strip("`").partition("\n")[2] if value.startswith("```") else value


class DatabaseStatement(Form):
    """One statement that reads, or none where the database cannot answer.

    Example:
        >>> DatabaseStatement(reason="Counts the rows.", statement=" SELECT count(*) FROM Track ").statement
        'SELECT count(*) FROM Track'
    """

    reason: Reason = Field(
        description="Which tables or labels answer the question and how, or why none can; one short sentence."
    )
    statement: Annotated[_Statement, AfterValidator(_without_fence), AfterValidator(str.strip)] = Field(
        description="One statement that reads; empty if the database cannot answer the question."
    )


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
