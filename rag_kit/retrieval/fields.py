"""Arguments of retrievers: types of fields, checks, names of other libraries, and errors in the kit's words."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from rag_kit.concurrency.budget import check_count as check_cap
from rag_kit.concurrency.budget import check_seconds
from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.retrieval.fusion import check_weights

_CONSTRUCTORS = ("from_llm", "from_rules", "from_documents", "from_texts")
_INSTEAD_OF_SEARCH_TYPE = {
    "mmr": "RerankRetriever(retriever=..., reranker=MMRReranker(embeddings))",
    "similarity_score_threshold": "RerankRetriever(retriever=..., reranker=..., score_threshold=...)",
}


def check_count(name: str, value: Any) -> int:
    """Return a whole number of at least 1, such as a number of documents; refuse anything else."""
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)  # also takes NumPy's integers
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInputError(f"{name}={value!r} was given; it must be a whole number >= 1.")
    return count


def check_number(name: str, value: Any, *, above: float | None = None, maximum: float | None = None) -> float:
    """Return a number of at least 0, or above ``above``, and at most ``maximum``; refuse anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    is_large_enough = is_number and (value >= 0 if above is None else value > above)
    if not is_large_enough or (maximum is not None and value > maximum):
        allowed = "from 0" if above is None else f"above {above:g}"
        allowed += "" if maximum is None else f" to {maximum:g}"
        raise InvalidInputError(f"{name}={value!r} was given; it must be a number {allowed}.")
    return float(value)


def _read_count(value: Any, info: ValidationInfo) -> Any:
    return check_count(str(info.field_name), value)


def _read_weights(value: Any) -> list[float] | None:
    if value is None:
        return None
    weights = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else []
    if not weights:
        raise InvalidInputError(f"weights={value!r} was given; give a list of numbers >= 0, or None.")
    return check_weights(weights, len(weights))


def read_retriever(value: Any) -> Any:
    """Return a retriever; refuse a value that cannot be asked as one, such as a vector store."""
    if isinstance(value, Runnable):
        return value
    name = type(value).__name__
    hint = f" Wrap it: VectorRetriever(vectorstore={name})." if isinstance(value, VectorStore) else ""
    raise InvalidInputError(
        f"retriever is {name}; it must be a LangChain retriever (or another runnable from a string to "
        f"documents).{hint}"
    )


def check_model(llm: Any) -> Runnable[Any, Any]:
    """Return a chat model; refuse a value that cannot be asked as one, such as a retriever."""
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
# checked before Pydantic takes True for 1 and a text for its number
Cap = Annotated[int | None, BeforeValidator(lambda value, info: check_cap(info.field_name, value))]
"""A cap on calls or tokens; ``None`` for none."""
Seconds = Annotated[float | None, BeforeValidator(lambda value, info: check_seconds(info.field_name, value))]
"""A time-out or deadline; ``None`` for none."""
Weights = Annotated[list[float] | None, BeforeValidator(_read_weights)]
"""The weights of lists, >= 0; ``None`` for equal ones."""
Fusion = Literal["rrf", "convex"]
"""How lists are fused: by ranks, or by the weighted mean of z-scores."""
RrfK = Annotated[float, BeforeValidator(lambda value, info: check_number(info.field_name, value))]
"""The ``k`` of reciprocal rank fusion; 60 is usual."""
InnerRetriever = Annotated[Runnable[str, list[Document]], BeforeValidator(read_retriever)]
"""A retriever that is asked by another."""
Model = Annotated[Runnable[Any, Any], BeforeValidator(check_model)]
"""A chat model, however wrapped."""


def translate_arguments(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename arguments of other libraries (``cls.other_names``) to those of this kit; refuse one given twice."""
    arguments = dict(values)
    for name, kit_name in _other_names(cls).items():
        if name in arguments and kit_name in cls.model_fields:
            if kit_name in arguments:
                raise InvalidInputError(
                    f"{name} and {kit_name} were given, which are the same; give {kit_name} alone."
                )
            arguments[kit_name] = arguments.pop(name)
    return _with_search_kwargs(cls, arguments) if cls.takes_search_kwargs else arguments


def _with_search_kwargs(cls: type[Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Turn ``search_kwargs`` and ``search_type`` of LangChain's vector-store retriever into this kit's arguments."""
    search_type = arguments.pop("search_type", "similarity")
    search_type = getattr(search_type, "value", search_type)  # of an enum
    if search_type != "similarity":
        instead = _INSTEAD_OF_SEARCH_TYPE.get(str(search_type))
        raise InvalidInputError(
            f"search_type={search_type!r} was given; allowed: 'similarity'."
            + (f" In rag_kit that is a retriever of its own: {instead}." if instead else "")
        )
    search_kwargs = arguments.pop("search_kwargs", None) or {}
    is_mapping = isinstance(search_kwargs, Mapping)
    if not is_mapping or not search_kwargs.keys() <= {"k", "filter"}:
        content = sorted(map(str, search_kwargs)) if is_mapping else type(search_kwargs).__name__
        raise InvalidInputError(f"search_kwargs holds {content}; allowed: a dict with 'k' and 'filter'.")
    for name, value in search_kwargs.items():
        default = cls.model_fields[name].default
        if arguments.get(name, default) != default:
            raise InvalidInputError(f"{name} was given twice, by itself and in search_kwargs; give it once.")
        arguments[name] = value
    return arguments


def unknown_arguments(names: Iterable[str], allowed: Collection[str], instead: Mapping[str, str]) -> str:
    """Explain unknown arguments: the name of each in rag_kit (``instead``) or a similar one; then all allowed names."""
    problems = []
    for name in names:
        hint = f" (in rag_kit: {instead[name]})" if name in instead else did_you_mean(name, allowed)
        problems.append(f"{name!r} is no argument{hint}")
    return f"{'; '.join(problems)}; allowed: {', '.join(sorted(allowed))}"


def as_invalid_input(cls: type[Any], error: ValidationError) -> RagKitError:
    """Turn Pydantic's report into the kit's error, without the values given: they may be secret or huge."""
    problems, unknown = [], []
    for item in error.errors(include_input=False, include_url=False):
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, RagKitError):
            return cause
        field = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            unknown.append(field)
        else:
            problems.append(f"{field}: {item['msg']}" if field else item["msg"])
    if unknown:
        problems.append(unknown_arguments(unknown, _allowed_arguments(cls), _other_names(cls)))
    return InvalidInputError(f"{cls.__name__} cannot be made: {'; '.join(problems)}.")


def _other_names(cls: type[Any]) -> dict[str, str]:
    """Return the ``other_names`` of the class and of its bases."""
    names: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        names |= vars(base).get("other_names", {})
    return names


def _allowed_arguments(cls: type[Any]) -> set[str]:
    """Return every argument of the class and of its constructors such as ``from_llm``."""
    names = set(cls.model_fields)
    for constructor in _CONSTRUCTORS:
        if method := getattr(cls, constructor, None):
            parameters = inspect.signature(method).parameters.values()
            names |= {parameter.name for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD}
    return names
