"""Context of a run: its settings, by a caller or an assistant in Studio, and how a turn keeps them.

LangGraph keeps no context, so the settings of a turn are kept in the state for whoever resumes it. Without them a run
that is resumed would show a tenant the passages of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os.path import commonprefix
from typing import Any, ClassVar, Literal, Self, TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph._internal._runnable import RunnableCallable
from langgraph.config import get_config
from langgraph.graph import START
from langgraph.pregel._write import ChannelWrite, ChannelWriteEntry
from langgraph.types import Overwrite
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from rag_kit.concurrency.budget import MAX_SECONDS
from rag_kit.documents.filters import LISTS, MISSING, Filter, combine_filters, plain_scalar, validate_filter
from rag_kit.documents.identity import content_hash, field_of
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.graphs.state import InputChannel, Update, clean_texts
from rag_kit.models.chat import check_model_name
from rag_kit.prompts import load_prompt
from rag_kit.retrieval.fields import as_invalid_input


def setting(default: Any, description: str, *nodes: str, **limits: Any) -> Any:
    """Make a setting that Studio shows beside the nodes that read it; ``limits`` are Pydantic's, such as ``ge``."""
    for_studio: Any = {"langgraph_nodes": list(nodes)}
    return Field(default=default, description=description, json_schema_extra=for_studio, **limits)


_default_texts: set[str] = set()


def instructions_field(prompt: str, *nodes: str) -> Any:
    """Make a setting by which a run replaces the instructions (the system message) of a prompt.

    Studio shows the file's own in English; if a run gives these unchanged, the file's own in its language are used.
    """
    system: Any = load_prompt(prompt, language="en").messages[0]
    text = system.format().text.partition("\n")[2].strip()  # without the line that names the task
    _default_texts.add(text)
    return Field(
        default=None,
        max_length=20_000,
        description=f"Instructions in place of those in the prompt file '{prompt}'; empty: the file's own.",
        json_schema_extra={"langgraph_nodes": list(nodes), "langgraph_type": "prompt", "default": text},
    )


#: Settings that an empty value in a later call does not undo: forms such as Studio's send all at their defaults.
_NEVER_EMPTIED = ("filter", "index", "model", "approve_web", "single")


def _merge_settings(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the settings of a call into those kept of its turn; `_NEVER_EMPTIED` are not emptied, both filters hold."""
    merged = {**kept, **{name: value for name, value in given.items() if value or name not in _NEVER_EMPTIED}}
    if kept.get("filter") and given.get("filter"):
        merged["filter"] = both_filters(kept["filter"], given["filter"])
    if kept.get("single") and given.get("single"):  # of CRAG, inside the adaptive graph
        merged["single"] = _merge_settings(kept["single"], given["single"])
    return merged


def both_filters(first: Filter | None, second: Filter | None) -> Filter | None:
    """AND two filters; one alone stays as it was given."""
    if not first or not second or first == second:
        return first or second
    return combine_filters(first, second)


def _plain_values(value: Any, depth: int = 40) -> Any:
    """Copy a filter with numpy's scalars as Python's and dates as ISO texts, as any checkpointer can store them."""
    if isinstance(value, Mapping) and depth:
        return {key: _plain_values(item, depth - 1) for key, item in value.items()}
    if isinstance(value, LISTS) and depth:
        return [_plain_values(item, depth - 1) for item in value]
    scalar = plain_scalar(value)
    return value if scalar is MISSING else scalar


class RagContext(BaseModel):
    """The settings that every graph has; what is unknown or out of range is refused in this kit's own words.

    LangGraph makes the object of the dict that ``invoke(..., context=...)`` was given, so the check stands here.
    Studio shows these settings at the nodes that the class variables name, and at those that have instructions.
    """

    model_config = ConfigDict(extra="forbid")

    first_node: ClassVar[str] = "begin"
    search_node: ClassVar[str] = "retrieve"
    citing_nodes: ClassVar[tuple[str, ...]] = ("cite",)

    language: Literal["auto", "en", "zh"] = setting(
        "auto", "Language of the prompts; 'auto' follows the question."
    )
    model: str | None = setting(
        None,
        "Another chat model for this run, as chat_model names it, e.g. openai:MODEL; empty: the graph's own.",
    )
    index: str | None = setting(None, "Another index for this run, if the graph has several; empty: its own.")
    k: int | None = setting(None, "Passages to retrieve; empty: the retriever's own number.", ge=1, le=100)
    filter: dict[str, Any] | None = setting(
        None, 'Only passages whose metadata match, e.g. {"year": {"$gte": 2020}}.'
    )
    max_calls: int | None = setting(100, "Model calls that one run may make.", ge=0)
    max_tokens: int | None = setting(
        None, "Tokens, in and out, that one run may use; the call that exceeds them is the last.", ge=1
    )
    deadline: float | None = setting(300.0, "Seconds that one run may take.", gt=0, le=MAX_SECONDS)
    citation_check: Literal["words", "model"] = setting(
        "words",
        "What checks the citations: 'words', or 'model', the graph's language model in one call more.",
    )

    @field_validator("model", "index")
    @classmethod
    def _check_name(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Turn a blank name, as Studio's form sends it, into None; check a model's name."""
        name = (value or "").strip() or None
        return check_model_name(name) if name and info.field_name == "model" else name

    _make_plain = field_validator("filter", "single", check_fields=False)(lambda value: _plain_values(value))

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            are_instructions = name.endswith("_instructions") and isinstance(value, str)
            if are_instructions and value.strip() in _default_texts:  # nobody changed them in Studio's form
                values[name] = None
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise as_invalid_input(type(self), error) from None
        except ConfigurationError as error:
            raise InvalidInputError(f"model is no name of a chat model: {error}") from None

    @classmethod
    def from_parent(cls, parent: Any) -> Self:
        """Read settings from another graph's context: a dict, a dataclass or any other object.

        What this graph has no setting for, and None, is left out. A value that is not allowed for the setting of its
        name is an error, since a filter or a cap that is left out would be worse.
        """
        values = {}
        for name in cls.model_fields:
            value = field_of(parent, name)
            # a model or an index of a foreign context is an object or a name of its own
            is_foreign = name in ("model", "index") and not isinstance(parent, RagContext)
            if value is not None and not callable(value) and not is_foreign:
                values[name] = value
        try:
            return cls(**values)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"{error} These are values of the parent graph's context ({type(parent).__name__}); rename them there, "
                "or call this graph in a node, with a context of its own: graph.invoke(..., config, context={})."
            ) from None

    def continued(self, kept: Mapping[str, Any]) -> Self:
        """Merge these settings of a later call into those with which the turn began (``kept``).

        Both filters hold. An empty value undoes none of `_NEVER_EMPTIED`, which limit what is searched and what leaves.
        """
        return type(self)(**_merge_settings(kept, self.named())) if kept else self

    def named(self) -> dict[str, Any]:
        """Return the settings that were given, also those given at their defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        """Tell LangGraph Studio which nodes each setting belongs to (``langgraph_nodes``)."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        instructions = [field for name, field in properties.items() if name.endswith("_instructions")]
        asking_nodes = [*dict.fromkeys(node for field in instructions for node in field["langgraph_nodes"])]
        nodes_of_settings: dict[str, Sequence[str]] = {
            "language": (cls.first_node,),
            **dict.fromkeys(("index", "k", "filter"), (cls.search_node,)),
            **dict.fromkeys(("model", "max_calls", "max_tokens"), asking_nodes),
            "deadline": [cls.search_node, *asking_nodes],
            "citation_check": cls.citing_nodes,
        }
        for name, nodes in nodes_of_settings.items():
            properties[name]["langgraph_nodes"] = list(nodes)
        return schema


class PlainRagContext(RagContext):
    """Settings of one run of the plain graph; each has a default."""

    first_node = "condense"

    condense_instructions: str | None = instructions_field("condense", "condense")
    answer_instructions: str | None = instructions_field("answer", "answer")


ContextT = TypeVar("ContextT", bound=RagContext)

#: Where a node's configuration holds LangGraph's runtime, and in it the context that the caller gave.
RUNTIME = "__pregel_runtime"
#: Settings whose names are also those of fields of LangChain's configurable models (`init_chat_model`).
_MODEL_FIELDS = {"model", "max_tokens"}


def begin_turns(compiled: Any, schema: type[RagContext], empty: Callable[[], Update] = dict) -> None:
    """Make a compiled graph check its input, and begin each turn with an empty state and the settings of its call."""
    builder = compiled.builder
    compiled.channels[START] = InputChannel(builder.input_schema)
    input_keys = builder.schemas[builder.input_schema].keys()
    other_keys = builder.channels.keys() - input_keys

    def begin(input: Any, config: RunnableConfig) -> Any:
        if RUNTIME in config["configurable"]:  # a run; else ``update_state`` edits the input
            given = {key for key in input_keys if field_of(input, key)}
            emptied = {key: value for key, value in empty().items() if key not in given}
            update = {**emptied, **_settings_of_call(schema, config, builder)}
        elif _brings_question(input, config):
            update = {**empty(), "turn_settings": {}}
        else:  # the same turn, with its settings; LangGraph would drop the keys that the input's schema lacks
            update = {key: input[key] for key in other_keys & (input or {}).keys()}
            first_node_ran = "asked" in builder.channels and read_state("asked", config)
            if first_node_ran:  # it will run again
                update = {**empty(), **update}
        ChannelWrite.do_write(config, [ChannelWriteEntry(key, value) for key, value in update.items()])
        return input

    # after the write of the input, before the edges that read the state
    compiled.nodes[START].writers.insert(1, RunnableCallable(begin, trace=False))


def _is_misspelling(key: str, name: str) -> bool:
    """Tell whether a key is a setting's name with a typo: ``"maxCalls"``, ``"fliter"``, ``"filtr"``."""
    typed, meant = (text.lower().replace("_", "") for text in (key, name))
    if typed == meant or len(meant) <= 3:  # with one letter changed, a short name is another word
        return typed == meant
    same = len(commonprefix([typed, meant]))  # noqa: RUF071 - no paths
    typed, meant = typed[same:], meant[same:]  # from the first letter that differs
    is_left_out, is_added, is_another = typed == meant[1:], typed[1:] == meant, typed[1:] == meant[1:]
    are_swapped = typed[1::-1] + typed[2:] == meant
    return is_left_out or is_added or is_another or are_swapped


def _declared_fields(builder: Any) -> set[str]:
    """Return the names of the configurable fields that the retriever and the models of a graph declare."""
    bodies = (getattr(spec.runnable, "body", None) for spec in builder.nodes.values())
    # the `RagNodes` whose methods the bodies are
    owners = (getattr(body, "__self__", None) for body in bodies)
    parts = (part for owner in owners if owner is not None for part in vars(owner).values())
    return {field.id for part in parts if isinstance(part, Runnable) for field in part.config_specs}


def _note_misspelled(schema: type[RagContext], configurable: Mapping[str, Any], builder: Any) -> list[str]:
    """Note the keys in a call's configuration that look like a setting with a typo, and are no field of a part."""
    names = schema.model_fields.keys()
    meant = {
        key: name
        for key in configurable.keys() - names
        if not key.startswith("__")  # LangGraph's own: a dozen in each run
        for name in names - _MODEL_FIELDS
        if _is_misspelling(key, name)
    }
    declared = _declared_fields(builder) if meant else set()
    return [
        f"degraded: config['configurable'] has {key!r}, which is no setting (did you mean {name!r}?)"
        for key, name in meant.items()
        if key not in declared
    ]


def _settings_of_call(schema: type[RagContext], config: RunnableConfig, builder: Any) -> Update:
    """Make the update that keeps the settings of a call for its turn, with notes on settings that have no effect."""
    configurable = config["configurable"]
    notes = _note_misspelled(schema, configurable, builder)
    if configurable.get("__pregel_resuming") and _has_no_context(schema, config):
        if not _is_inside_another(config):
            raise InvalidInputError(
                "this run goes on from before its first step, where its settings are not kept yet: give its "
                'context again, or context={"filter": None} if it had none.'
            )
        notes.append(
            "degraded: the parent graph went on without a context, which it does not keep, so no filter of an earlier "
            "call holds"
        )
    settings = given_context(schema, config).named()
    if "filter" in configurable and "filter" not in settings:
        problem = "is not the kit's: at most a field of that name takes it"
        notes.append(f"degraded: the filter in config['configurable'] {problem}")
    kept = {"turn_settings": {**settings, "question": _hash_question(config, fresh=True)}}
    return {"notes": Overwrite(notes), **kept} if notes else kept


def run_context(schema: type[ContextT], config: RunnableConfig | None = None) -> ContextT:
    """Return the settings of this run: those of its caller, with those of the call that began the turn.

    A question that came by an edit begins a turn of its own, whose settings are those of the call after it.
    """
    config = config or get_config()
    given, kept = given_context(schema, config), dict(read_state("turn_settings", config) or {})
    question_hash = kept.pop("question", None)
    if question_hash == _hash_question(config):
        return given.continued(kept)
    # no hash: an edit as "__start__" emptied the settings, and nobody knows whether there were some
    may_lose_settings = bool(kept) or question_hash is None
    if may_lose_settings and _has_no_context(schema, config):
        raise InvalidInputError(
            "the question of this turn came by an edit of the state, so no settings are kept for it: give its "
            'context, or context={"filter": None} if it has none.'
        )
    return given


def keep_settings(context: RagContext, question: str | None = None) -> Update:
    """Return the update that keeps these settings for the turn of a question; empty if the state has them already."""
    given_hash = None if question is None else content_hash(str(clean_texts(question)))
    question_hash = given_hash or _hash_question(get_config())
    are_kept = (read_state("turn_settings") or {}).get("question") == question_hash
    return {} if are_kept else {"turn_settings": {**context.named(), "question": question_hash}}


def given_context(schema: type[ContextT], config: RunnableConfig) -> ContextT:
    """Return the settings that the caller gave, else the defaults; those in ``config["configurable"]`` hold too.

    LangGraph passes None in plain Python and an instance on the server. In a parent graph that gave no ``context``
    it passes the parent's, of whatever class: what has the name of a setting is taken from it.
    """
    context: Any = config["configurable"][RUNTIME].context
    if not isinstance(context, schema | None) and not _is_inside_another(config):
        raise InvalidInputError(
            f"context is a {type(context).__name__}; give a dict. Allowed: {', '.join(schema.model_fields)}."
        )
    settings = context if isinstance(context, schema) else schema.from_parent(context)
    return settings.continued(_settings_of_config(schema, config))


def _settings_of_config(schema: type[RagContext], config: RunnableConfig) -> dict[str, Any]:
    """Return the settings in ``config["configurable"]``, from which LangGraph's server makes the context."""
    settings: dict[str, Any] = {}
    for name in config["configurable"].keys() & schema.model_fields.keys() - _MODEL_FIELDS:
        try:
            given = schema(**{name: config["configurable"][name]}).named()
            validate_filter(given.get("filter"))
        except InvalidInputError:  # it is for a field of the caller's own runnables, as a store's filter
            continue
        settings |= given
    return settings


def _has_no_context(schema: type[RagContext], config: RunnableConfig) -> bool:
    if "langgraph_request_id" in config["configurable"]:  # from a server, which makes {} of no context
        return not given_context(schema, config).named()
    return config["configurable"][RUNTIME].context is None and not _settings_of_config(schema, config)


def read_state(key: str, config: RunnableConfig | None = None, *, fresh: bool = False) -> Any:
    """Read a key of the state, also one that a user's node leaves out; ``fresh`` sees the task's own writes."""
    return (config or get_config())["configurable"]["__pregel_read"](key, fresh)


def _is_inside_another(config: RunnableConfig) -> bool:
    return "|" in config["configurable"].get("checkpoint_ns", "")


def _brings_question(edit: Any, config: RunnableConfig) -> bool:
    """Tell whether an edit of the input asks a new question; the same one is new once the turn's first node ran."""
    question = field_of(edit, "question")
    if question is None:  # it may be in the messages of a chat
        return _human_messages(config) != _human_messages(config, fresh=True)
    is_another = question != read_state("question", config)
    return is_another or bool(read_state("asked", config))  # a turn's first node writes "asked"


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
