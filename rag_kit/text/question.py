"""What can be asked: a text that is not empty, and no longer than a question needs to be."""

from __future__ import annotations

from typing import Any

from rag_kit.errors import InvalidInputError

#: About what embedding models read (8,000 tokens); longer is a document, and no question about one.
MAX_QUESTION_CHARS = 32_000


def check_question(question: Any, *, example: str = "'How ...?'") -> str:
    """See that something can be asked.

    Args:
        question: What somebody gave as a question.
        example: How to give one, for the message.

    Returns:
        The question, unchanged.

    Raises:
        InvalidInputError: It is no string, holds white space only, or more than `MAX_QUESTION_CHARS` characters.

    Example:
        >>> check_question("Who?")
        'Who?'
        >>> check_question("why " * 10_000)
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: question has 40,000 characters; at most 32,000 are allowed. ...
    """
    if not isinstance(question, str):
        raise InvalidInputError(f"question is a {type(question).__name__}; give a text, as in {example}.")
    if not question.strip():
        raise InvalidInputError(f"question is empty; give a text, as in {example}.")
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInputError(
            f"question has {len(question):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed. Ask for what "
            "matters, and put long texts into the index."
        )
    return question
