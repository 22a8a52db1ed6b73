"""Arguments of retrievers: names of other libraries are translated, unknown ones are refused with the allowed names."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError, RagKitError

_CONSTRUCTORS = ("from_llm", "from_rules", "from_documents", "from_texts")
_SEARCH_TYPES = {
    "mmr": "RerankRetriever(retriever=..., reranker=MMRReranker(embeddings))",
    "similarity_score_threshold": "RerankRetriever(retriever=..., reranker=..., score_threshold=...)",
}


def translate_arguments(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, those with names of other libraries under the names of this kit (``cls.other_names``)."""
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
    """``search_kwargs`` and ``search_type`` of a vector-store retriever as arguments of this kit."""
    kind = arguments.pop("search_type", "similarity")
    kind = getattr(kind, "value", kind)
    if kind != "similarity":
        instead = _SEARCH_TYPES.get(str(kind))
        raise InvalidInputError(
            f"search_type={kind!r} was given; allowed: 'similarity'."
            + (f" In rag_kit that is a retriever of its own: {instead}." if instead else "")
        )
    search = arguments.pop("search_kwargs", None) or {}
    if not isinstance(search, Mapping) or not search.keys() <= {"k", "filter"}:
        named = sorted(map(str, search)) if isinstance(search, Mapping) else type(search).__name__
        raise InvalidInputError(f"search_kwargs holds {named}; allowed: a dict with 'k' and 'filter'.")
    for name, value in search.items():
        if arguments.get(name, cls.model_fields[name].default) != cls.model_fields[name].default:
            raise InvalidInputError(f"{name} was given twice, by itself and in search_kwargs; give it once.")
        arguments[name] = value
    return arguments


def unknown_arguments(names: Iterable[str], allowed: Collection[str], instead: Mapping[str, str]) -> str:
    """The message for unknown arguments: for each the name in rag_kit or a similar one, then all names allowed."""
    problems = []
    for name in names:
        hint = f" (in rag_kit: {instead[name]})" if name in instead else did_you_mean(name, allowed)
        problems.append(f"{name!r} is no argument{hint}")
    return f"{'; '.join(problems)}; allowed: {', '.join(sorted(allowed))}"


def as_invalid_input(cls: type[Any], error: ValidationError) -> RagKitError:
    """Pydantic's report as the kit's own error, without the values given, which may be secret or huge."""
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
    """``other_names`` of the class and of its bases."""
    names: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        names |= vars(base).get("other_names", {})
    return names


def _allowed_arguments(cls: type[Any]) -> set[str]:
    """Every argument of the class and of its constructors such as ``from_llm``."""
    names = set(cls.model_fields)
    for constructor in _CONSTRUCTORS:
        if method := getattr(cls, constructor, None):
            parameters = inspect.signature(method).parameters.values()
            names |= {parameter.name for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD}
    return names
