"""Fingerprint of a pipeline without a version: its settings and code, the same in every process."""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from rag_kit.evaluation.runs.rows import digest

_MAX_DEPTH = 60
_MAX_OBJECTS = 8000
_PLAIN = (str, int, float, bool, bytes, type(None))
_CHANGEABLE = (list, set, dict)
_ITEMS = (*_CHANGEABLE, tuple, frozenset)
_TEXTS = (Enum, PurePath, Decimal, date, timedelta)  # described by their text alone
#: Fields of LangChain objects that do not change their results.
_IGNORED_FIELDS = frozenset(
    {"callbacks", "callback_manager", "tags", "metadata", "verbose", "cache", "name", "http_client",
     "http_async_client"}
)  # fmt: skip
#: Packages whose objects are described by their class and settings, without their code.
_KNOWN_PACKAGES = frozenset(
    {"langchain", "langchain_core", "langchain_classic", "langchain_community", "langchain_openai", "langgraph",
     "langchain_chroma", "rag_kit", "pydantic", "openai", "httpx", "numpy", "pandas", "torch", "transformers",
     "sentence_transformers", "chromadb", "builtins", "threading", "asyncio", "_thread", "collections", "functools",
     "re", "sqlite3"}
)  # fmt: skip
#: Attributes of graphs and Runnables without declared fields that hold their parts.
_PART_ATTRIBUTES = ("nodes", "bound", "steps", "func", "afunc", "kwargs", "writers")


def pipeline_hash(pipeline: Any) -> str:
    """Hash a pipeline's settings and code, the same in every process.

    It covers the public settings of LangChain objects, nodes of a graph, the code of functions and of one's own
    functions and classes that they use, and the values of closures and modules that they read. Of lists, sets and
    mappings only the pipelines and functions in them count: a function may collect there what it has done. For changes
    there and elsewhere (the content of an index, a prompt on a server) there is `version`.

    Example:
        >>> def make(k):
        ...     return lambda question: question * k
        >>> pipeline_hash(make(2)) == pipeline_hash(make(2)), pipeline_hash(make(2)) == pipeline_hash(make(3))
        (True, False)
    """
    return digest(_describe(pipeline, {}, 0))


def unseen_variables(pipeline: Any) -> list[str]:
    """Return, as in "cache (dict)", each collection that a pipeline's functions read and its hash leaves out."""
    hashed = (*_PLAIN, tuple, frozenset, type)
    unseen: set[str] = set()
    for part in _parts_in(pipeline):
        if not (inspect.isfunction(part) and is_own(part)):
            continue
        for name, value in _outer_values(part):
            if hasattr(value, "__len__") and not isinstance(value, hashed) and not _is_part(value):
                unseen.add(f"{name} ({type(value).__qualname__})")
    return sorted(unseen)


def retrievers_in(value: Any) -> Iterator[Any]:
    """Yield the retrievers and vector stores of a pipeline, also in nodes and closures; none that is inside another."""
    return (part for part in _parts_in(value) if isinstance(part, (BaseRetriever, VectorStore)))


def is_all_known(value: Any) -> bool:
    """Tell whether a pipeline's functions and Runnables, models aside, are of known packages: others could search."""
    for part in _parts_in(value):
        is_function = inspect.isroutine(part)
        can_search = is_function or (isinstance(part, Runnable) and not isinstance(part, BaseLanguageModel))
        if can_search and not _is_known(part if is_function else type(part)):
            return False
    return True


def _is_known(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in _KNOWN_PACKAGES


def _parts_in(value: Any) -> Iterator[Any]:
    """Yield a pipeline and all its parts at any depth, but nothing from inside retrievers and stores."""
    seen: dict[int, Any] = {}  # id -> part, which stays alive, so that no other one gets its id
    waiting = [value]
    while waiting and len(seen) < _MAX_OBJECTS:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, (*_PLAIN, type, types.ModuleType)):
            continue
        seen[id(part)] = part
        yield part
        if not isinstance(part, (BaseRetriever, VectorStore)):
            parts = _parts_of(part)
            waiting.extend(parts.values() if isinstance(parts, Mapping) else parts)


def _describe(value: Any, seen: dict[int, tuple[int, Any]], depth: int) -> Any:
    """Describe a value as plain JSON; ``seen`` maps ids of the objects described so far to their number and object."""
    if isinstance(value, _PLAIN):
        return repr(value) if isinstance(value, (float, bytes)) else value
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, _TEXTS) or (isinstance(value, type) and not is_own(value)):
        return str(value)
    if id(value) in seen:
        return ["seen", seen[id(value)][0]]
    if depth > _MAX_DEPTH or len(seen) >= _MAX_OBJECTS:
        return type(value).__qualname__
    seen[id(value)] = len(seen), value  # the object stays alive, so that no other one gets its id
    parts = _parts_of(value)
    if isinstance(parts, Mapping):
        return {str(key): _describe(item, seen, depth + 1) for key, item in parts.items()}
    described = [_describe(item, seen, depth + 1) for item in parts]
    return sorted(map(str, described)) if isinstance(value, (set, frozenset)) else described


def _parts_of(value: Any) -> Any:
    """Return the parts of an object that decide its results, as a collection: its items, its code, or its settings."""
    if isinstance(value, _ITEMS):
        return value
    if isinstance(value, types.CodeType):  # not line numbers: moving a function does not change it
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if inspect.ismethod(value):
        return [value.__func__, value.__self__]
    if inspect.isfunction(value):
        outer = [[name, _without_results(item)] for name, item in _outer_values(value)]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, outer]
    if isinstance(value, type):
        return [str(value), _code_of(value)]
    cls = type(value)
    if "SecretStr" in cls.__qualname__:  # no fingerprint depends on a key
        return [str(cls)]
    return [str(cls), _settings_of(value), _code_of(cls)]


def _code_of(cls: type) -> list[list[Any]]:
    """Return [name, value] of the functions and plain data of a class, and of one's own classes that it extends.

    Data that some method assigns to (``self.calls += 1``) is left out: it may count what was done.
    """
    bases = [base for base in cls.__mro__ if is_own(base) or (base is cls and not _is_known(base))]
    members: list[list[Any]] = []
    assigned: set[str] = set()
    for base in bases:
        for name, item in sorted(vars(base).items()):
            # the function in a static or class method, or in a property
            item = getattr(item, "__func__", getattr(item, "fget", item))
            if inspect.isfunction(item):
                members.append([name, item])
                assigned.update(
                    each.argval for each in dis.get_instructions(item) if each.opname == "STORE_ATTR"
                )
            elif isinstance(item, _PLAIN) and not name.startswith("__"):
                members.append([name, item])
    return [[name, item] for name, item in members if inspect.isfunction(item) or name not in assigned]


def is_own(value: Any) -> bool:
    """Tell whether a module, a class or a function is one's own: of no known and no installed package."""
    name = str(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)
    folders = Path(getattr(sys.modules.get(name), "__file__", None) or "").parts
    is_installed = "site-packages" in folders or "dist-packages" in folders
    return name.partition(".")[0] not in _KNOWN_PACKAGES | sys.stdlib_module_names and not is_installed


def _outer_values(function: types.FunctionType) -> list[list[Any]]:
    """Return [name, value] of what a function reads of its closure and, if it is one's own, of its module.

    Variables that it assigns to are left out: it may count there. A module of one's own is replaced by those of its
    attributes that the function reads, ``[["settings.LIMIT", 5]]``; any other module is left out.
    """
    variables = dict(function.__globals__) if is_own(function) else {}
    free_names = function.__code__.co_freevars
    for name, cell in zip(free_names, function.__closure__ or (), strict=True):
        variables[name] = None
        with suppress(ValueError):  # the cell is still empty
            variables[name] = cell.cell_contents
    codes = [function.__code__]
    for code in codes:  # which grows on the way by the code of functions and comprehensions in it
        codes += [item for item in code.co_consts if isinstance(item, types.CodeType)]
    instructions = [each for code in codes for each in dis.get_instructions(code)]
    read = {each.argval for each in instructions if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    assigned = {each.argval for each in instructions if each.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    mentioned = {str(each.argval) for each in instructions}
    values = []
    for name in sorted(read.union(free_names) & variables.keys() - assigned):
        value = variables[name]
        if not isinstance(value, types.ModuleType):
            values.append([name, value])
        elif is_own(value):
            attributes = sorted(mentioned & vars(value).keys())
            values += [[f"{name}.{attribute}", getattr(value, attribute)] for attribute in attributes]
    return values


def _settings_of(value: Any) -> dict[str, Any]:
    """Return an object's settings by name: declared fields, else attributes that are parts or plain arguments."""
    cls = type(value)
    if isinstance(declared := getattr(cls, "model_fields", None), Mapping):
        names = [name for name, info in declared.items() if not info.exclude and name not in _IGNORED_FIELDS]
        return {name: getattr(value, name, None) for name in sorted(names)}
    if is_dataclass(value):
        names = [info.name for info in fields(value) if info.init]
        return {name: _without_results(getattr(value, name, None)) for name in names}
    if cls.__module__.startswith(("langgraph", "langchain")):
        return {name: item for name in _PART_ATTRIBUTES if (item := getattr(value, name, None))}
    arguments: set[str] = set()
    with suppress(TypeError, ValueError):  # a class without a signature
        arguments = set(inspect.signature(cls).parameters)
    settings = {}
    for name, item in sorted(getattr(value, "__dict__", {}).items()):
        is_argument = name.lstrip("_") in arguments
        if _is_part(item) or (is_argument and isinstance(item, (*_PLAIN, tuple, frozenset))):
            settings[name] = item
    return settings


def _without_results(value: Any) -> Any:
    """Return only the pipelines and functions in a list, set or mapping: the rest may be what a function collects."""
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if _is_part(item)}
    if isinstance(value, _CHANGEABLE):
        return [item for item in value if _is_part(item)]
    return value


def _is_part(value: Any) -> bool:
    """Tell whether a value is a pipeline or a function, and no class."""
    return not isinstance(value, type) and (hasattr(value, "ainvoke") or inspect.isroutine(value))
