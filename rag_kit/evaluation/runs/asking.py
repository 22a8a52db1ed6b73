"""Ask any kind of pipeline one example: what it is given, and how it is called without holding up the others."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.bridge import acall_function
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.models.clients import acall_runnable

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

#: Asks the pipeline; gives whatever it gives.
Ask = Callable[[Example], Awaitable[Any]]
MakeInput = Callable[[Example], Any]

_QUESTION = ("question", "input", "query")
_HISTORY = ("history", "chat_history")


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
        what = (
            f"the class {pipeline.__name__}" if isinstance(pipeline, type) else f"a {type(pipeline).__name__}"
        )
        if inspect.iscoroutine(pipeline):
            pipeline.close()  # else Python warns of it too
            what = "a coroutine (give the function itself, and do not call it)"
        raise InvalidInputError(
            f"the pipeline is {what}; give a LangChain Runnable, retriever or graph, a function from a question "
            "to an answer, or 'module:object'"
        )
    return pipeline


def asker(pipeline: Any, make_input: MakeInput | None = None) -> Ask:
    """How the pipeline is asked.

    Args:
        pipeline: What ``resolve`` gave.
        make_input: What the pipeline is called with, for an example; default: what its kind takes. A graph gets
            ``{"question": ...}`` (or ``messages`` where that is what it takes), a retriever or a function the
            question, another Runnable what its input schema names.
    """
    if not _is_runnable(pipeline):
        return _call(pipeline, make_input)
    if _is_graph(pipeline):
        return _graph(pipeline, make_input)
    make = make_input or _input_of_runnable(pipeline)
    if _only_sync(pipeline):
        return lambda example: run_in_thread(pipeline.invoke, make(example), _config(example))
    return lambda example: acall_runnable(pipeline, make(example), _config(example))


def _call(function: Callable[[Any], Any], make_input: MakeInput | None) -> Ask:
    make = make_input or _question
    return lambda example: acall_function(function, make(example))


def _graph(graph: Any, make_input: MakeInput | None) -> Ask:
    fields = set(graph.get_input_jsonschema().get("properties", ()))
    channels = set(graph.channels)
    nodes = [name for name in graph.nodes if name != "__start__"]
    # beside what the graph gives back: what was searched for, which a report shows
    gives = getattr(graph, "output_channels", None)
    keys = [*gives, *({"search_query"} & channels - set(gives))] if isinstance(gives, list) else None
    by_messages = "messages" in fields and not fields & set(_QUESTION)

    async def ask(example: Example) -> Any:
        config = _config(example)
        asked = graph
        if make_input is not None:
            given = make_input(example)
        elif by_messages:
            given = {"messages": [*_messages(example), ("user", example.question)]}
        else:
            given = _mapping(example, fields or {"question"})
        if graph.checkpointer not in (None, False):
            # each example is a conversation of its own, also when the same one is asked again
            config["configurable"] = {"thread_id": f"evaluate-{uuid4().hex}"}
        if example.history and make_input is None and not by_messages and not fields & set(_HISTORY):
            if "history" not in channels:
                raise InvalidInputError(
                    "the example has a history, and the graph takes none; give make_input"
                )
            asked, config["configurable"] = await _with_history(graph, example, nodes[0])
        value = await acall_runnable(asked, given, config, output_keys=keys)
        return _told(value)

    return ask


async def _with_history(graph: Any, example: Example, node: str) -> tuple[Any, dict[str, str]]:
    """A thread that has the earlier turns in its state: graphs of this kit take them from there, not as input."""
    from langgraph.checkpoint.memory import InMemorySaver

    thread = {"thread_id": uuid4().hex}
    remembering = graph.copy({"checkpointer": InMemorySaver()})
    turns = [{"question": turn["question"], "answer": turn["answer"]} for turn in example.history]
    await remembering.aupdate_state({"configurable": thread}, {"history": turns}, as_node=node)
    return remembering, thread


def _told(value: Any) -> Any:
    """A graph that stopped to ask back has not answered; that is told, and its state is kept."""
    if isinstance(value, Mapping) and value.get("__interrupt__"):
        asked = "; ".join(str(getattr(each, "value", each)) for each in value["__interrupt__"])
        rest = {key: item for key, item in value.items() if key != "__interrupt__"}
        return {**rest, "notes": [*(value.get("notes") or ()), f"the graph stopped to ask: {asked}"]}
    return value


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
    if len(fields) == 1 and not fields & {"messages"}:
        (name,) = fields
        return lambda example: {name: example.question}
    return _question


def _mapping(example: Example, fields: set[str]) -> dict[str, Any]:
    name = next((each for each in _QUESTION if each in fields), "question")
    given: dict[str, Any] = {name: example.question}
    for history in _HISTORY:
        if history in fields:
            turns = [dict(turn) for turn in example.history]
            given[history] = turns if history == "history" else _messages(example)
    return given


def _messages(example: Example) -> list[tuple[str, str]]:
    return [
        message
        for turn in example.history
        for message in (("user", turn["question"]), ("assistant", turn["answer"]))
    ]


def _question(example: Example) -> str:
    return example.question


def _config(example: Example) -> RunnableConfig:
    return {"metadata": {"evaluation_example": example.id}}


def _is_runnable(value: Any) -> bool:
    return hasattr(value, "ainvoke") and hasattr(value, "invoke") and not isinstance(value, type)


def _is_graph(value: Any) -> bool:
    return hasattr(value, "aupdate_state") and hasattr(value, "nodes") and hasattr(value, "channels")


def _only_sync(runnable: Any) -> bool:
    """Whether its ``ainvoke`` would only run ``invoke`` in asyncio's own pool, which has few threads."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable

    kind = type(runnable)
    if isinstance(runnable, BaseRetriever):
        same = getattr(kind, "_aget_relevant_documents", None) is BaseRetriever._aget_relevant_documents
        return same and kind.ainvoke is BaseRetriever.ainvoke
    return getattr(kind, "ainvoke", None) is Runnable.ainvoke


def default_name(pipeline: Any) -> str:
    """What a pipeline is called where the user gives no name."""
    get_name = getattr(pipeline, "get_name", None)
    if callable(get_name):
        return str(get_name())
    name = getattr(pipeline, "__name__", None)
    if name == "<lambda>":
        return "pipeline"
    return str(name) if isinstance(name, str) else type(pipeline).__name__
