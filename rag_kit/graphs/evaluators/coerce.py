"""What can be given as an evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator
from rag_kit.graphs.evaluators.cross_encoder import CrossEncoderEvaluator
from rag_kit.graphs.evaluators.function import FunctionEvaluator
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.graphs.evaluators.llm import LLMEvaluator
from rag_kit.models.chat import bare_model, is_extractive
from rag_kit.retrieval.rerank.scorers import is_cross_encoder


def as_evaluator(value: Any = None) -> Evaluator:
    """Make an evaluator from a model, a cross-encoder, embeddings, a function or a chain.

    Args:
        value: An ``Evaluator``; an embedding model (evidence of words and vectors); a LangChain cross-encoder; a
            chat model, which is asked about each passage; a function of the question and one passage or all of
            them, or a chain such as ``prompt | llm.with_structured_output(Grade)`` (see ``FunctionEvaluator``); or
            ``None``: evidence of words alone.

    Raises:
        InvalidInputError: It is something else.

    Example:
        >>> as_evaluator().name, as_evaluator(lambda question, passages: [0.0] * len(passages)).name
        ('lexical', 'function')
    """
    if value is None:
        return LexicalEvaluator()
    if isinstance(value, Evaluator):
        return value
    if is_cross_encoder(value):
        return CrossEncoderEvaluator(value)
    if isinstance(value, Embeddings):
        return LexicalEvaluator(embeddings=value)
    if isinstance(bare_model(value), BaseLanguageModel):
        return LLMEvaluator(value)
    if (callable(value) or isinstance(value, Runnable)) and not isinstance(value, (type, BaseRetriever)):
        return FunctionEvaluator(value)
    what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
    raise InvalidInputError(
        f"evaluator is {what}; give an Evaluator, a chat model, a LangChain cross-encoder, an embedding model, a "
        "function of question and passages, a chain, or None."
    )


def grader_of(value: Any, llm: Any, prompts: Path | None = None) -> Evaluator:
    """The evaluator of a graph: the one given, else the graph's own language model.

    The embedded ``extractive`` is no language model: beside it words are the evidence.
    """
    if value is None and not is_extractive(llm):
        return LLMEvaluator(llm, prompts=prompts)
    return as_evaluator(value)
