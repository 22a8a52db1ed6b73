"""Types of the fields that several retrievers have; each refuses what is not allowed, in the kit's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import BeforeValidator, Field, ValidationInfo

from rag_kit.concurrency.budget import check_count as check_cap
from rag_kit.concurrency.budget import check_seconds
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.fusion import check_weights


def _read_count(value: Any, info: ValidationInfo) -> Any:
    return check_count(str(info.field_name), value)


def _read_cap(value: Any, info: ValidationInfo) -> Any:
    """Refuse what is not a count, before Pydantic takes True for 1 and a text for its number."""
    check_cap(str(info.field_name), value)
    return value


def _read_weights(value: Any) -> list[float] | None:
    if value is None:
        return None
    weights = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else []
    if not weights:
        raise InvalidInputError(f"weights={value!r} was given; give a list of numbers >= 0, or None.")
    return check_weights(weights, len(weights))


def read_retriever(value: Any) -> Any:
    """See that something can be asked as a retriever."""
    if isinstance(value, Runnable):
        return value
    name = type(value).__name__
    hint = f" Wrap it: VectorRetriever(vectorstore={name})." if isinstance(value, VectorStore) else ""
    raise InvalidInputError(
        f"retriever is {name}; it must be a LangChain retriever (or another runnable from a string to "
        f"documents).{hint}"
    )


def check_model(llm: Any) -> Runnable[Any, Any]:
    """See that something can be asked as a chat model."""
    if not isinstance(llm, Runnable) or isinstance(llm, BaseRetriever):
        raise InvalidInputError(
            f"llm is {type(llm).__name__}; it must be a chat model (or another runnable that takes messages), and "
            "from_llm takes it first."
        )
    return llm


Count = Annotated[int, BeforeValidator(_read_count)]
"""A number of documents, at least 1."""
OptionalCount = Annotated[
    int | None, BeforeValidator(lambda value, info: None if value is None else _read_count(value, info))
]
"""A ``Count``, or ``None``."""
Rewrites = Annotated[Count, Field(le=32)]
"""A number of rewrites, 1 to 32."""
Cap = Annotated[int | None, BeforeValidator(_read_cap)]
"""A cap on calls or tokens; ``None`` for none."""
Seconds = Annotated[float | None, BeforeValidator(lambda value, info: check_seconds(info.field_name, value))]
"""A time-out or deadline; ``None`` for none."""
Weights = Annotated[list[float] | None, BeforeValidator(_read_weights)]
"""The weights of lists, >= 0; ``None`` for equal ones."""
InnerRetriever = Annotated[Runnable[str, list[Document]], BeforeValidator(read_retriever)]
"""A retriever that is asked by another."""
Model = Annotated[Runnable[Any, Any], BeforeValidator(check_model)]
"""A chat model, however wrapped."""
