"""Context of a run: settings by a caller, or by an assistant in Studio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from rag_kit.concurrency.budget import MAX_SECONDS
from rag_kit.documents.filters import LISTS, MISSING, Filter, combine_filters, plain_scalar
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.chat import check_model_name
from rag_kit.prompts import load_prompt
from rag_kit.retrieval.fields import as_invalid_input


def setting(default: Any, description: str, *nodes: str, **more: Any) -> Any:
    """Make a setting that Studio shows beside the nodes that read it; `more` goes to Pydantic's ``Field``."""
    return Field(
        default=default, description=description, json_schema_extra={"langgraph_nodes": list(nodes)}, **more
    )


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
_HELD = ("filter", "index", "model", "approve_web", "single")


def _merge_settings(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the settings of a call into those kept of its turn; none of `_HELD` is emptied, both filters hold."""
    merged = {**kept, **{name: value for name, value in given.items() if value or name not in _HELD}}
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
    """Copy a filter with numpy's scalars as Python's and dates as their ISO texts, which any checkpointer can store."""
    if isinstance(value, Mapping) and depth:
        return {key: _plain_values(item, depth - 1) for key, item in value.items()}
    if isinstance(value, LISTS) and depth:
        return [_plain_values(item, depth - 1) for item in value]
    scalar = plain_scalar(value)
    return value if scalar is MISSING else scalar


class RagContext(BaseModel):
    """The settings that every graph has; what is unknown or out of range is refused in this kit's own words.

    LangGraph makes the object of the dict that ``invoke(..., context=...)`` was given, so the check stands here.
    Studio shows these settings at the nodes that the class variables name.
    """

    model_config = ConfigDict(extra="forbid")

    first_node: ClassVar[str] = "begin"
    search_node: ClassVar[str] = "retrieve"
    asking_nodes: ClassVar[tuple[str, ...]] = ()
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
            # the file's own text in English, as Studio's form sends it, means: no other instructions
            if name.endswith("_instructions") and isinstance(value, str) and value.strip() in _default_texts:
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
            value = parent.get(name) if isinstance(parent, Mapping) else getattr(parent, name, None)
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
        """Return these settings over those with which the turn began (``kept``).

        Both filters hold, and a default does not undo what limits where is searched and what may leave (`_HELD`).
        """
        return type(self)(**_merge_settings(kept, self.named())) if kept else self

    def named(self) -> dict[str, Any]:
        """Return the settings that were given, also those given at their defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        """Tell LangGraph Studio which nodes each setting belongs to (``langgraph_nodes``)."""
        schema = handler(core)
        nodes_of_settings: dict[str, tuple[str, ...]] = {
            "language": (cls.first_node,),
            **dict.fromkeys(("index", "k", "filter"), (cls.search_node,)),
            **dict.fromkeys(("model", "max_calls", "max_tokens"), cls.asking_nodes),
            "deadline": (cls.search_node, *cls.asking_nodes),
            "citation_check": cls.citing_nodes,
        }
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, nodes in nodes_of_settings.items():
            properties[name]["langgraph_nodes"] = list(nodes)
        return schema


class PlainRagContext(RagContext):
    """Settings of one run of the plain graph; each has a default."""

    first_node = "condense"
    asking_nodes = ("condense", "answer")

    condense_instructions: str | None = instructions_field("condense", "condense")
    answer_instructions: str | None = instructions_field("answer", "answer")
