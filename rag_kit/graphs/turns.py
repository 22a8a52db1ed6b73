"""The settings of a turn: LangGraph keeps no context, so they are kept in the state for whoever resumes the turn.

Without them a run that is resumed would show a tenant the passages of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph._internal._runnable import RunnableCallable
from langgraph.config import get_config
from langgraph.graph import START
from langgraph.pregel._write import ChannelWrite, ChannelWriteEntry
from langgraph.types import Overwrite

from rag_kit.documents.identity import content_hash, field_of
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.state import InputChannel, Update, clean_texts

ContextT = TypeVar("ContextT", bound=RagContext)

#: Where a node's configuration holds LangGraph's runtime, and in it the context that the caller gave.
RUNTIME = "__pregel_runtime"
_NO_CONTEXT = (
    "degraded: the parent graph went on without a context, which it does not keep, so no filter of an earlier call "
    "holds"
)


def begin_turns(compiled: Any, schema: type[RagContext], empty: Callable[[], Update] = dict) -> None:
    """Check the input of a compiled graph; begin each turn with an empty state and the settings of its call."""
    builder = compiled.builder
    compiled.channels[START] = InputChannel(builder.input_schema)
    beyond_input = builder.channels.keys() - builder.schemas[builder.input_schema]

    def begin(input: Any, config: RunnableConfig) -> Any:
        configurable, update = config["configurable"], {**empty(), "turn_settings": {}}
        if RUNTIME in configurable:  # else it is an edit of the state, which has no settings
            if configurable.get("__pregel_resuming") and configurable[RUNTIME].context is None:
                if not _is_inside_another(config):
                    raise InvalidInputError(
                        "this run goes on from before its first step, where its settings are not kept yet: give its "
                        "context again, or context={} if it had none."
                    )
                update["notes"] = Overwrite([_NO_CONTEXT])
            question = _hash_question(config, fresh=True)
            update["turn_settings"] = {**given_context(schema, config).named(), "question": question}
        elif not _brings_question(
            input, config
        ):  # the turn goes on, with its settings and what LangGraph would drop
            began = "asked" in builder.channels and read_state("asked", config)
            edited = {key: input[key] for key in beyond_input & (input or {}).keys()}
            update = {**(empty() if began else {}), **edited}
        ChannelWrite.do_write(config, [ChannelWriteEntry(key, value) for key, value in update.items()])
        return input

    # after the write of the input, before the edges that read the state
    compiled.nodes[START].writers.insert(1, RunnableCallable(begin, trace=False))


def run_context(schema: type[ContextT], config: RunnableConfig | None = None) -> ContextT:
    """Return the settings of this run: those of its caller, with those of the call that began the turn.

    A question that came by an edit begins a turn of its own, whose settings are those of the call after it.
    """
    config = config or get_config()
    given, kept = given_context(schema, config), dict(read_state("turn_settings", config) or {})
    question = kept.pop("question", None)
    if question == _hash_question(config):
        return given.continued(kept)
    # an edit as "__start__" leaves nothing, not even the question
    if (kept or question is None) and config["configurable"][RUNTIME].context is None:
        raise InvalidInputError(
            "the question of this turn came by an edit of the state, so no settings are kept for it: give its "
            "context, or context={} if it has none."
        )
    return given


def keep_settings(context: RagContext, question: str | None = None) -> Update:
    """Return the update that keeps these settings for the turn of a question; empty if the state has them already."""
    asked = _hash_question(get_config()) if question is None else content_hash(str(clean_texts(question)))
    is_kept = (read_state("turn_settings") or {}).get("question") == asked
    return {} if is_kept else {"turn_settings": {**context.named(), "question": asked}}


def given_context(schema: type[ContextT], config: RunnableConfig) -> ContextT:
    """Return the settings that the caller gave, else the defaults.

    LangGraph passes None in plain Python and an instance on the server. In a parent graph that gave no ``context``
    it passes the parent's, of whatever class: what has the name of a setting is taken from it.
    """
    context: Any = config["configurable"][RUNTIME].context
    if context is None:
        return schema()
    if isinstance(context, schema):
        return context
    if not _is_inside_another(config):
        raise InvalidInputError(
            f"context is a {type(context).__name__}; give a dict. Allowed: {', '.join(schema.model_fields)}."
        )
    return schema.from_parent(context)


def read_state(key: str, config: RunnableConfig | None = None, *, fresh: bool = False) -> Any:
    """Read a key of the state, also one that a user's node leaves out; ``fresh`` sees the task's own writes."""
    return (config or get_config())["configurable"]["__pregel_read"](key, fresh)


def _is_inside_another(config: RunnableConfig) -> bool:
    """Tell whether the graph of a node is itself in a node of another graph."""
    return "|" in config["configurable"].get("checkpoint_ns", "")


def _brings_question(edit: Any, config: RunnableConfig) -> bool:
    """Tell whether an edit of the input brings a question, other than that of a turn whose first node is to run."""
    if (question := field_of(edit, "question")) is not None:
        return question != read_state("question", config) or bool(read_state("asked", config))
    return _human_messages(config) != _human_messages(config, fresh=True)


def _hash_question(config: RunnableConfig, *, fresh: bool = False) -> str | None:
    """Hash the question of the turn, which guards may mask; in a chat it is the last human message."""
    try:
        return content_hash(str(read_state("question", config, fresh=fresh)))
    except KeyError:
        questions = _human_messages(config, fresh=fresh)
        return content_hash(questions[-1].text) if questions else None


def _human_messages(config: RunnableConfig, *, fresh: bool = False) -> list[HumanMessage]:
    """Return the questions of a chat; none in a graph without messages."""
    try:
        messages = read_state("messages", config, fresh=fresh) or []
    except KeyError:
        return []
    return [message for message in messages if isinstance(message, HumanMessage)]
