"""Fields of the forms that models fill in, and what a form says to a model in the language of the prompt.

A Pydantic class says its docstring (up to its first section or doctest) and its fields' descriptions; in place of the
docstring of a class of this kit, which is for programmers, stands the prompt file's description. Its checks stay.

Lengths and counts are checked and stand in no JSON schema: several providers refuse one with ``minLength`` or
``maxLength`` in their strict mode, and every field is required for the same reason.
"""

import copy
import re
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

MAX_LINE = 500
#: Texts that say that there is nothing to say: "None", "N/A", "无".
NOTHING = re.compile(r"[\s\"'(\[]*(?:none|n/?a|null|nil|无|没有)[\s\"')\].。]*", re.IGNORECASE)
_TEXTS_SCHEMA = WithJsonSchema({"type": "array", "items": {"type": "string"}})

#: What a field says to a model in English -> the same in Chinese.
CHINESE: dict[str, str] = {}


class Form(BaseModel):
    """Base of the forms: immutable; unknown fields are refused, unless a validator of the form reads them first."""

    reads_other_fields: ClassVar[bool] = False
    model_config = ConfigDict(extra="forbid", frozen=True)


def ask_for(english: str, chinese: str) -> Any:
    """Make a field whose description tells the model, in the language of the prompt, what to write into it."""
    CHINESE[english] = chinese
    return Field(description=english)


def text_type(limit: int, *, empty: bool = False) -> Any:
    """Make the type of a text of at most ``limit`` characters, without blanks around it."""
    length = StringConstraints(strip_whitespace=True, min_length=0 if empty else 1, max_length=limit)
    return Annotated[str, length, WithJsonSchema({"type": "string"})]


def list_validator(max_items: int) -> Any:
    """Make a validator that accepts lists of at most ``max_items`` entries; it does not check the entries."""

    def check(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError("must be a list")
        if len(value) > max_items:
            raise ValueError(f"has {len(value)} entries; at most {max_items} are allowed")
        return value

    return check


def texts_type(max_items: int, min_items: int = 0) -> Any:
    """Make the type of ``min_items`` to ``max_items`` texts without blanks around them."""
    item = Annotated[str, StringConstraints(strip_whitespace=True)]
    return Annotated[list[item], Field(min_length=min_items, max_length=max_items), _TEXTS_SCHEMA]


def split_lines(value: Any) -> Any:
    """Split a text into its non-empty lines, without list marks: ``"- a" -> ["a"]``; None is [], other values stay."""
    if isinstance(value, str):
        lines = [line.strip(" -*\t") for line in value.splitlines()]
        return [line for line in lines if line]
    return [] if value is None else value


def rows_type(max_rows: int, **types: Any) -> Any:
    """Make the type of a list of at most ``max_rows`` objects; ``types``: field -> name of a JSON type, or its schema.

    Only the schema for the model has these types. The caller checks the objects, so that a bad one loses no other.
    """
    fields = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in types.items()}
    row = {"type": "object", "properties": fields, "required": list(types), "additionalProperties": False}
    schema = WithJsonSchema({"type": "array", "items": row})
    return Annotated[list[Any], BeforeValidator(list_validator(max_rows)), schema]


def one_line(value: Any) -> str:
    """Cut a text to one line of MAX_LINE characters; a missing one is empty."""
    return "" if value is None else " ".join(str(value).split())[:MAX_LINE]


Line = Annotated[str, BeforeValidator(one_line), WithJsonSchema({"type": "string"})]
"""One line, such as a reason; it may be empty, and a long one is cut."""


_DEFAULT_DESCRIPTIONS = {"en": "The answer.", "zh": "答案。"}
# the beginning of what a docstring says to programmers: a doctest, or the heading of a section such as "Args:"
_FOR_PROGRAMMERS = re.compile(
    r"^[ \t]*(?:>>>|(?:Args|Arguments|Attributes|Examples?|Notes?|Parameters|Raises|Returns|See Also|Yields):[ \t]*$)",
    re.MULTILINE,
)


def for_model(schema: type[BaseModel], language: str, description: str = "") -> type[BaseModel]:
    """Make a subclass of a form whose JSON schema tells the model, in a language, what the form and its fields are.

    For a form of this kit ``description`` replaces the docstring, and docstrings of forms inside it are left out.
    """
    json_schema = schema.model_json_schema()
    is_ours = schema.__module__.partition(".")[0] == "rag_kit"
    for node in (json_schema, *json_schema.get("$defs", {}).values()):
        docstring = str(node.pop("description", ""))
        if not is_ours:
            text = _FOR_PROGRAMMERS.split(docstring, maxsplit=1)[0].strip()
        elif node is json_schema:
            text = description or _DEFAULT_DESCRIPTIONS.get(language, "")
        else:
            text = ""
        if text:
            node["description"] = text
        for field in node.get("properties", {}).values():
            if language == "zh" and field.get("description") in CHINESE:
                field["description"] = CHINESE[field["description"]]

    def model_json_schema(cls: type[BaseModel], *args: Any, **kwargs: Any) -> dict[str, Any]:
        return copy.deepcopy(json_schema)

    body = {
        "__module__": schema.__module__,
        "__doc__": json_schema.get("description"),
        "model_json_schema": classmethod(model_json_schema),
    }
    metaclass: Any = type(schema)  # called, for a class statement cannot take the name from a variable
    subclass: type[BaseModel] = metaclass(schema.__name__, (schema,), body)
    return subclass
