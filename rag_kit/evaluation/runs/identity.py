"""Tell a pipeline from the same one with other settings, without being told a version.

What is looked at is what decides the result and is the same in every process: public settings of LangChain objects,
nodes of a graph, the code of functions and what they close over. Nothing of it is stored but a hash. What is not seen
(the content of an index, a prompt on a server) is what `version` is for. What a pipeline only notes while it works
(lists that it fills, counters) does not make it another one.
"""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any

from rag_kit.evaluation.runs.keys import digest

_MAX_DEPTH = 24
_MAX_OBJECTS = 4000
_PLAIN = (str, int, float, bool, bytes, type(None))
#: Fields of LangChain objects that do not decide what comes out.
_NO_SETTINGS = frozenset(
    {
        "callbacks",
        "callback_manager",
        "tags",
        "metadata",
        "verbose",
        "cache",
        "name",
        "http_client",
        "http_async_client",
    }
)
#: Packages whose classes are told apart by their settings alone.
_KNOWN = frozenset(
    {"langchain", "langchain_core", "langchain_classic", "langchain_community", "langchain_openai", "langgraph",
     "langchain_chroma", "rag_kit", "pydantic", "openai", "httpx", "numpy", "chromadb", "builtins", "threading",
     "asyncio", "_thread", "collections", "functools", "re", "sqlite3"}
)  # fmt: skip
_OF_GRAPHS = ("nodes", "bound", "steps", "func", "afunc", "kwargs", "writers")


def pipeline_hash(pipeline: Any) -> str:
    """A hash of a pipeline's settings and code.

    Example:
        >>> def make(k):
        ...     return lambda question: question * k
        >>> pipeline_hash(make(2)) == pipeline_hash(make(2)), pipeline_hash(make(2)) == pipeline_hash(make(3))
        (True, False)
    """
    return digest(_Walk().see(pipeline, 0))


class _Walk:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # alive while walking, so that no id is used twice

    def see(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return [type(value).__qualname__, value.name]
        if isinstance(value, _PLAIN):
            return repr(value) if isinstance(value, (float, bytes)) else value
        if id(value) in self._seen:
            return ["seen", self._seen[id(value)]]
        if depth > _MAX_DEPTH or len(self._seen) >= _MAX_OBJECTS:
            return type(value).__qualname__
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return self._parts(value, depth + 1)

    def _parts(self, value: Any, depth: int) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.see(item, depth) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted(str(self.see(item, depth)) for item in value)
        if isinstance(value, Mapping):
            return {str(key): self.see(item, depth) for key, item in value.items()}
        if isinstance(value, PurePath):
            return str(value)
        if isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, types.ModuleType):
            return value.__name__
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, types.CodeType):
            # not the names' order or line numbers: moving a function does not change it
            return [value.co_code.hex(), list(value.co_names), self.see(value.co_consts, depth)]
        if isinstance(value, functools.partial):
            return [kind, *(self.see(part, depth) for part in (value.func, value.args, value.keywords))]
        if inspect.ismethod(value):
            return ["method", self.see(value.__func__, depth), self.see(value.__self__, depth)]
        if inspect.isfunction(value):
            return self._function(value, depth)
        if "SecretStr" in kind:
            return kind
        parts = [[name, self.see(item, depth)] for name, item in _settings(value)]
        return [kind, parts, self._own_code(type(value), depth)]

    def _function(self, function: types.FunctionType, depth: int) -> Any:
        written = {each.argval for each in dis.get_instructions(function) if each.opname == "STORE_DEREF"}
        closed = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # the cell is empty still
                continue
            if name not in written:
                closed.append([name, self.see(_no_notes(content), depth)])
        defaults = [self.see(function.__defaults__, depth), self.see(function.__kwdefaults__, depth)]
        return ["function", self.see(function.__code__, depth), *defaults, closed]

    def _own_code(self, kind: type, depth: int) -> Any:
        """The code of a class of the user's own."""
        if kind.__module__.partition(".")[0] in _KNOWN:
            return None
        return [
            [name, self.see(item.__code__, depth)]
            for name, item in sorted(vars(kind).items())
            if inspect.isfunction(item)
        ]


def _settings(value: Any) -> list[tuple[str, Any]]:
    """What an object is set to, by name; what it only notes while it works is left out."""
    if isinstance(declared := getattr(type(value), "model_fields", None), Mapping):
        names = [name for name, field in declared.items() if not field.exclude and name not in _NO_SETTINGS]
        return [(name, getattr(value, name, None)) for name in sorted(names)]
    if is_dataclass(value):
        return [
            (each.name, _no_notes(getattr(value, each.name, None))) for each in fields(value) if each.init
        ]
    if type(value).__module__.startswith(("langgraph", "langchain")):
        return [(name, getattr(value, name)) for name in _OF_GRAPHS if getattr(value, name, None)]
    return [
        (name, _no_notes(item)) for name, item in _given(value) if _is_part(item) or isinstance(item, _PLAIN)
    ]


def _given(value: Any) -> Iterable[tuple[str, Any]]:
    """Attributes that stand for an argument of the class, and those that hold a part of a pipeline."""
    try:
        arguments = set(inspect.signature(type(value)).parameters)
    except (TypeError, ValueError):
        arguments = set()
    own = getattr(value, "__dict__", {})
    return [
        (name, item) for name, item in sorted(own.items()) if name.lstrip("_") in arguments or _is_part(item)
    ]


def _no_notes(value: Any) -> Any:
    """Of a list or mapping that a function can fill as it works only the parts of a pipeline."""
    if isinstance(value, (list, set)):
        return [item for item in value if _is_part(item)]
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if _is_part(item)}
    return value


def _is_part(value: Any) -> bool:
    return not isinstance(value, type) and (hasattr(value, "ainvoke") or inspect.isroutine(value))
