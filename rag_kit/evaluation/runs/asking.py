"""Ask any kind of pipeline one example, and tell a pipeline from the same one with other settings."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_kit.concurrency.bridge import acall_function, run_in_thread
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.runs.rows import digest
from rag_kit.models.clients import acall_runnable

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

#: Asks the pipeline; gives whatever it gives.
Ask = Callable[[Example], Awaitable[Any]]
MakeInput = Callable[[Example], Any]

_QUESTION = ("question", "input", "query")
_HISTORY = ("history", "chat_history")

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


def resolve(pipeline: Any) -> Any:
    """The pipeline itself: ``"module:object"`` is imported, which runs the module's code.

    Raises:
        InvalidInputError: If it is nothing that can be asked.
    """
    if isinstance(pipeline, str):
        from rag_kit.evaluation.ranking.pipelines import load_object

        if ":" not in pipeline and Path(pipeline).is_dir():
            raise InvalidInputError(
                f"the pipeline is the folder {pipeline!r:.80}; give what answers from it, such as "
                f"index_retriever(DocumentIndex.open({pipeline!r:.80})), or a graph over that"
            )
        pipeline = load_object(pipeline)
    if isinstance(pipeline, type) or not (_is_runnable(pipeline) or callable(pipeline)):
        kind = pipeline.__name__ if isinstance(pipeline, type) else type(pipeline).__name__
        what = f"the class {kind}" if isinstance(pipeline, type) else f"a {kind}"
        if inspect.iscoroutine(pipeline):
            pipeline.close()  # else Python warns of it too
            what = "a coroutine (give the function itself, and do not call it)"
        raise InvalidInputError(
            f"the pipeline is {what}; give a LangChain Runnable, retriever or graph, a function from a question "
            "to an answer, or 'module:object'"
        )
    return pipeline


def default_name(pipeline: Any) -> str:
    """A pipeline's name where the user gives none: its own, else that of its class."""
    if callable(get_name := getattr(pipeline, "get_name", None)):
        return str(get_name())
    name = getattr(pipeline, "__name__", type(pipeline).__name__)
    return "pipeline" if name == "<lambda>" else str(name)


def asker(pipeline: Any, make_input: MakeInput | None = None) -> Ask:
    """The async function that asks the pipeline one example.

    Args:
        pipeline: What ``resolve`` gave.
        make_input: What the pipeline is called with, for an example; default: what its kind takes. A graph gets
            ``{"question": ...}`` (or ``messages`` where that is what it takes), a retriever or a function the
            question, another Runnable what its input schema names.
    """
    if not _is_runnable(pipeline):
        make = make_input or _question
        return lambda example: acall_function(pipeline, make(example))
    if hasattr(pipeline, "aupdate_state") and hasattr(pipeline, "channels"):
        return _graph(pipeline, make_input)
    make = make_input or _input_of_runnable(pipeline)
    if _only_sync(pipeline):
        return lambda example: run_in_thread(pipeline.invoke, make(example), _config(example))
    return lambda example: acall_runnable(pipeline, make(example), _config(example))


def _graph(graph: Any, make_input: MakeInput | None) -> Ask:
    fields = set(graph.get_input_jsonschema().get("properties", ()))
    channels = set(graph.channels)
    # beside what the graph gives back: what was searched for, which a report shows
    gives = getattr(graph, "output_channels", None)
    keys = [*gives, *({"search_query"} & channels - set(gives))] if isinstance(gives, list) else None
    by_messages = "messages" in fields and not fields & set(_QUESTION)
    takes_history = make_input is not None or by_messages or bool(fields & set(_HISTORY))

    def default(example: Example) -> Any:
        if by_messages:
            return {"messages": [*_messages(example), ("user", example.question)]}
        return _mapping(example, fields or {"question"})

    async def ask(example: Example) -> Any:
        config, asked = _config(example), graph
        if graph.checkpointer not in (None, False):
            # each example is a conversation of its own, also when the same one is asked again
            config["configurable"] = {"thread_id": f"evaluate-{uuid4().hex}"}
        if example.history and not takes_history:
            if "history" not in channels:
                raise InvalidInputError(
                    "the example has a history, and the graph takes none; give make_input"
                )
            asked, config["configurable"] = await _with_history(graph, example)
        return await acall_runnable(asked, (make_input or default)(example), config, output_keys=keys)

    return ask


async def _with_history(graph: Any, example: Example) -> tuple[Any, dict[str, str]]:
    """A thread that has the earlier turns in its state: graphs of this kit take them from there, not as input."""
    from langgraph.checkpoint.memory import InMemorySaver

    thread = {"thread_id": uuid4().hex}
    remembering = graph.copy({"checkpointer": InMemorySaver()})
    turns = [{"question": turn["question"], "answer": turn["answer"]} for turn in example.history]
    first = next(name for name in graph.nodes if name != "__start__")
    await remembering.aupdate_state({"configurable": thread}, {"history": turns}, as_node=first)
    return remembering, thread


def _input_of_runnable(runnable: Any) -> MakeInput:
    from langchain_core.retrievers import BaseRetriever

    if isinstance(runnable, BaseRetriever):
        return _question
    try:
        schema = runnable.get_input_jsonschema()
    except Exception:  # noqa: BLE001 - a schema is a hint; many Runnables cannot give one
        return _question
    fields = set(schema.get("properties", ())) if schema.get("type") == "object" else set()
    if fields & set(_QUESTION):
        return lambda example: _mapping(example, fields)
    if len(fields) == 1 and fields != {"messages"}:
        (name,) = fields
        return lambda example: {name: example.question}
    return _question


def _mapping(example: Example, fields: set[str]) -> dict[str, Any]:
    name = next((each for each in _QUESTION if each in fields), "question")
    turns = {"history": [dict(turn) for turn in example.history], "chat_history": _messages(example)}
    return {name: example.question, **{each: turns[each] for each in _HISTORY if each in fields}}


def _messages(example: Example) -> list[tuple[str, str]]:
    roles = (("user", "question"), ("assistant", "answer"))
    return [(role, turn[field]) for turn in example.history for role, field in roles]


def _question(example: Example) -> str:
    return example.question


def _config(example: Example) -> RunnableConfig:
    return {"metadata": {"evaluation_example": example.id}}


def _is_runnable(value: Any) -> bool:
    return hasattr(value, "ainvoke") and hasattr(value, "invoke") and not isinstance(value, type)


def _only_sync(runnable: Any) -> bool:
    """Whether its ``ainvoke`` would only run ``invoke`` in asyncio's own pool, which has few threads."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable

    kind = type(runnable)
    if isinstance(runnable, BaseRetriever):
        same = kind._aget_relevant_documents is BaseRetriever._aget_relevant_documents
        return same and kind.ainvoke is BaseRetriever.ainvoke
    return getattr(kind, "ainvoke", None) is Runnable.ainvoke


def pipeline_hash(pipeline: Any) -> str:
    """A hash of a pipeline's settings and code, the same in every process.

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


def _describe(value: Any, seen: dict[int, tuple[int, Any]], depth: int) -> Any:
    """Describe a value as plain JSON; ``seen`` keeps what was met alive, so that no id is used twice."""
    if isinstance(value, _PLAIN):
        return repr(value) if isinstance(value, (float, bytes)) else value
    if isinstance(value, (Enum, PurePath, type, types.ModuleType)):
        return value.__name__ if isinstance(value, types.ModuleType) else str(value)
    if id(value) in seen:
        return ["seen", seen[id(value)][0]]
    if depth > _MAX_DEPTH or len(seen) >= _MAX_OBJECTS:
        return type(value).__qualname__
    seen[id(value)] = len(seen), value
    parts = _parts(value)
    if isinstance(parts, Mapping):
        return {str(key): _describe(item, seen, depth + 1) for key, item in parts.items()}
    described = [_describe(item, seen, depth + 1) for item in parts]
    return sorted(map(str, described)) if isinstance(value, (set, frozenset)) else described


def _parts(value: Any) -> Any:
    """What an object is made of."""
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        return value
    if isinstance(value, types.CodeType):  # not line numbers: moving a function does not change it
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if inspect.ismethod(value):
        return [value.__func__, value.__self__]
    if inspect.isfunction(value):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, _closure(value)]
    kind = type(value)
    if "SecretStr" in kind.__qualname__:
        return [kind]
    own = {} if kind.__module__.partition(".")[0] in _KNOWN else vars(kind)
    code = [[name, item.__code__] for name, item in sorted(own.items()) if inspect.isfunction(item)]
    return [kind, _settings(value), code]


def _closure(function: types.FunctionType) -> list[Any]:
    """What a function closes over and does not write to."""
    written = {each.argval for each in dis.get_instructions(function) if each.opname == "STORE_DEREF"}
    names = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [[name, _without_notes(cell)] for name, cell in names if name not in written]


def _settings(value: Any) -> dict[str, Any]:
    """What an object is set to, by name."""
    kind = type(value)
    if isinstance(declared := getattr(kind, "model_fields", None), Mapping):
        names = [name for name, each in declared.items() if not each.exclude and name not in _NO_SETTINGS]
        return {name: getattr(value, name, None) for name in sorted(names)}
    if is_dataclass(value):
        return {
            each.name: _without_notes(getattr(value, each.name, None)) for each in fields(value) if each.init
        }
    if kind.__module__.startswith(("langgraph", "langchain")):
        return {name: item for name in _OF_GRAPHS if (item := getattr(value, name, None))}
    try:
        arguments = set(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        arguments = set()
    own = sorted(getattr(value, "__dict__", {}).items())
    return {
        name: item
        for name, item in own
        if _is_part(item) or (name.lstrip("_") in arguments and isinstance(item, _PLAIN))
    }


def _without_notes(value: Any) -> Any:
    """Keep only the pipeline parts of a list or mapping, which a function can fill as it works."""
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
    return not isinstance(value, type) and (hasattr(value, "ainvoke") or inspect.isroutine(value))
