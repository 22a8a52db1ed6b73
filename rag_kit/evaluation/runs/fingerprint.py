"""Fingerprint of a pipeline without a version: its settings and code, the same in every process."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from rag_kit.evaluation.runs.rows import digest

_MAX_DEPTH = 60
_MAX_OBJECTS = 8000
_PLAIN = (str, int, float, bool, bytes, type(None))
#: Fields of LangChain objects that do not decide what comes out.
_NO_SETTINGS = frozenset(
    {"callbacks", "callback_manager", "tags", "metadata", "verbose", "cache", "name", "http_client",
     "http_async_client"}
)  # fmt: skip
#: Packages whose classes differ in their settings alone.
_KNOWN = frozenset(
    {"langchain", "langchain_core", "langchain_classic", "langchain_community", "langchain_openai", "langgraph",
     "langchain_chroma", "rag_kit", "pydantic", "openai", "httpx", "numpy", "chromadb", "builtins", "threading",
     "asyncio", "_thread", "collections", "functools", "re", "sqlite3"}
)  # fmt: skip
_OF_GRAPHS = ("nodes", "bound", "steps", "func", "afunc", "kwargs", "writers")


def pipeline_hash(pipeline: Any) -> str:
    """Hash a pipeline's settings and code, the same in every process.

    It sees the public settings of LangChain objects, nodes of a graph, the code of functions and what they close over.
    What is not seen (the content of an index, a prompt on a server) is what `version` is for. What a pipeline only
    notes while it works (lists that it fills, counters) does not count.

    Example:
        >>> def make(k):
        ...     return lambda question: question * k
        >>> pipeline_hash(make(2)) == pipeline_hash(make(2)), pipeline_hash(make(2)) == pipeline_hash(make(3))
        (True, False)
    """
    return digest(_describe(pipeline, {}, 0))


def retrievers_in(value: Any) -> Iterator[Any]:
    """Return the outermost retrievers and stores of a pipeline, or in its nodes, settings and closures."""
    return (part for part in _parts_in(value) if isinstance(part, (BaseRetriever, VectorStore)))


def is_all_known(value: Any) -> bool:
    """Tell whether a pipeline holds only parts of known packages, models aside: others could search anywhere."""
    for part in _parts_in(value):
        is_function = inspect.isroutine(part)
        can_search = is_function or (isinstance(part, Runnable) and not isinstance(part, BaseLanguageModel))
        if can_search and _package_of(part if is_function else type(part)) not in _KNOWN:
            return False
    return True


def _package_of(value: Any) -> str:
    return str(value.__module__).partition(".")[0]


def _parts_in(value: Any) -> Iterator[Any]:
    """Yield everything that a pipeline is made of, without the insides of retrievers and stores."""
    seen: dict[int, Any] = {}
    left = [value]
    while left and len(seen) < _MAX_OBJECTS:
        part = left.pop()
        if id(part) in seen or isinstance(part, (*_PLAIN, type, types.ModuleType)):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, (BaseRetriever, VectorStore)):
            continue
        parts = _parts_of(part)
        left.extend(parts.values() if isinstance(parts, Mapping) else parts)


def _describe(value: Any, earlier: dict[int, tuple[int, Any]], depth: int) -> Any:
    """Describe a value as plain JSON; ``earlier`` keeps what was met alive, so that no id is used twice."""
    if isinstance(value, _PLAIN):
        return repr(value) if isinstance(value, (float, bytes)) else value
    if isinstance(value, (Enum, PurePath, type, types.ModuleType)):
        return value.__name__ if isinstance(value, types.ModuleType) else str(value)
    if id(value) in earlier:
        return ["seen", earlier[id(value)][0]]
    if depth > _MAX_DEPTH or len(earlier) >= _MAX_OBJECTS:
        return type(value).__qualname__
    earlier[id(value)] = len(earlier), value
    parts = _parts_of(value)
    if isinstance(parts, Mapping):
        return {str(key): _describe(item, earlier, depth + 1) for key, item in parts.items()}
    described = [_describe(item, earlier, depth + 1) for item in parts]
    return sorted(map(str, described)) if isinstance(value, (set, frozenset)) else described


def _parts_of(value: Any) -> Any:
    """Return the parts of an object that say what it does: a mapping by name, or a list."""
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        return value
    if isinstance(value, types.CodeType):  # not line numbers: moving a function does not change it
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if inspect.ismethod(value):
        return [value.__func__, value.__self__]
    if inspect.isfunction(value):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, _closure_values(value)]
    kind = type(value)
    if "SecretStr" in kind.__qualname__:  # no fingerprint depends on a key
        return [kind]
    attributes = {} if kind.__module__.partition(".")[0] in _KNOWN else vars(kind)
    code = [[name, item.__code__] for name, item in sorted(attributes.items()) if inspect.isfunction(item)]
    return [kind, _settings_of(value), code]


def _closure_values(function: types.FunctionType) -> list[Any]:
    """Return what a function closes over, unless it writes to it."""
    written = {step.argval for step in dis.get_instructions(function) if step.opname == "STORE_DEREF"}
    names = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [[name, _without_notes(cell)] for name, cell in names if name not in written]


def _settings_of(value: Any) -> dict[str, Any]:
    """Return the settings of an object, by name."""
    kind = type(value)
    if isinstance(declared := getattr(kind, "model_fields", None), Mapping):
        names = [name for name, info in declared.items() if not info.exclude and name not in _NO_SETTINGS]
        return {name: getattr(value, name, None) for name in sorted(names)}
    if is_dataclass(value):
        names = [info.name for info in fields(value) if info.init]
        return {name: _without_notes(getattr(value, name, None)) for name in names}
    if kind.__module__.startswith(("langgraph", "langchain")):
        return {name: item for name in _OF_GRAPHS if (item := getattr(value, name, None))}
    try:
        arguments = set(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        arguments = set()
    attributes = sorted(getattr(value, "__dict__", {}).items())
    return {
        name: item
        for name, item in attributes
        if _is_part(item) or (name.lstrip("_") in arguments and isinstance(item, _PLAIN))
    }


def _without_notes(value: Any) -> Any:
    """Keep the pipeline parts of a list or mapping that a function may fill while it works."""
    if isinstance(value, types.CellType):
        try:
            value = value.cell_contents
        except ValueError:  # the cell is empty still
            return None
    if isinstance(value, (list, set)):
        return [item for item in value if _is_part(item)]
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if _is_part(item)}
    return value


def _is_part(value: Any) -> bool:
    """Tell whether a value is a pipeline or a function, and no class."""
    return not isinstance(value, type) and (hasattr(value, "ainvoke") or inspect.isroutine(value))
