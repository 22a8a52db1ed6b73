"""What a model fills in where it writes questions for an evaluation set, and where it checks them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from rag_kit.prompts.fields import Form, bounded, text, texts

MAX_QUESTIONS = 16
MAX_ENTRIES = 16
MAX_CHARS = 4_000


_Texts: Any = texts(MAX_ENTRIES)
_Short: Any = text(MAX_CHARS, empty=True)


class GeneratedQuestion(Form):
    """A question with its answer, and the words of the passages that it rests on.

    Example:
        >>> GeneratedQuestion(question="Who built it?", answers="Ada", reference="Ada did.", quotes=["by Ada"]).answers
        ['Ada']
    """

    question: _Short = Field(description="The question, complete in itself.")
    answers: _Texts = Field(
        description="The short answer, copied from the passage; one entry a part of the answer."
    )
    reference: _Short = Field(description="The full answer in one or two sentences.")
    quotes: _Texts = Field(
        description="The sentence that holds the answer, word for word; one for each passage used."
    )


class GeneratedQuestions(Form):
    """Questions that passages answer; empty if they answer none.

    Example:
        >>> GeneratedQuestions(questions=[]).questions
        []
    """

    questions: Annotated[list[GeneratedQuestion], BeforeValidator(bounded(MAX_QUESTIONS))] = Field(
        description="Questions with their answers; an empty list if the passages are good for none."
    )


class QuestionCheck(Form):
    """What somebody says of a question who sees it for the first time.

    Example:
        >>> QuestionCheck(answerable=True, answer="Ada.", stands_alone=True, needs_all=True, reason="").answer
        'Ada.'
    """

    answerable: bool = Field(description="True if the passages answer the question completely.")
    answer: _Short = Field(description="The answer that the passages give; empty if there is none.")
    stands_alone: bool = Field(description="True if the question is understood without seeing the passages.")
    needs_all: bool = Field(description="True if every passage is needed for the answer.")
    reason: _Short = Field(description="Why, in one short sentence.")
