"""The YAML block at the top of a prompt file, read strictly and with line numbers."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable
from typing import Annotated, Any

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Words that mean something else: helpers of Handlebars and dotprompt, and what LangChain keeps for itself.
RESERVED_VARIABLES = frozenset(
    {"role", "media", "json", "section", "if", "unless", "each", "with", "else", "log", "lookup", "this"}
    | {"true", "false", "null", "undefined", "stop", "self"}
)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MAX_SCHEMA_CHARS = 200_000
MAX_TOKENS = 128_000
Report = Callable[[int, str], None]  # takes line and message of what is wrong
Lines = dict[str, int]  # the line of each key, as "input.question"


def schema_problem(schema: Any) -> str | None:
    """Return in one line what is wrong with an inline JSON schema; None if a model can be asked to fill it in."""
    if not isinstance(schema, dict):
        return f"it is {type(schema).__name__}; write the name of a class, or a mapping with 'type: object'"
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return "the top level needs 'type: object' and 'properties'"
    if not schema["properties"]:
        return "'properties' is empty; name at least one field"
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is no JSON ({error})"
    if len(text) > _MAX_SCHEMA_CHARS:
        return f"it has more than {_MAX_SCHEMA_CHARS:,} characters"
    if json.loads(text) != schema:  # JSON turns a key such as 1 into "1"
        return "its keys are text, in quotes where they look like numbers"
    from jsonschema import Draft202012Validator, SchemaError  # 0.13 s, needed for inline schemas alone

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"at {'.'.join(map(str, error.absolute_path))}: {error.message}"
    if reference := re.search(r'"\$ref": "((?!#/)[^"]*)', text):  # one that does not begin with "#/"
        return f"$ref must point into the same schema ('#/$defs/...'), not to {reference[1]!r}"
    return None


def _check_name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError("allowed: lower-case letters, digits and _, a letter first, up to 64")
    return value


def _check_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("it is not a variable name; allowed: letters, digits and _, no digit first")
    if name in RESERVED_VARIABLES or name.startswith("__"):
        raise ValueError("it is a reserved word; choose another name")
    return name


def _read_version(value: Any) -> Any:
    """Accept a bare number where dotprompt wants text: people write it, and mean the same."""
    return str(value) if type(value) is int and value >= 1 else value


def _read_inputs(value: Any) -> Any:
    """Return the inputs declared under ``input``, or under ``input.schema``, as dotprompt writes them."""
    is_nested = isinstance(value, dict) and value.keys() == {"schema"} and isinstance(value["schema"], dict)
    return value["schema"] if is_nested else value


def _check_schema(value: Any) -> Any:
    from rag_kit.prompts.schemas import SCHEMAS  # two dozen classes, which a prompt for a text does not need

    if isinstance(value, str):
        if value not in SCHEMAS:
            raise ValueError(f"unknown schema; allowed: {', '.join(SCHEMAS)}, or an inline JSON schema")
    elif (problem := schema_problem(value)) is not None:
        raise ValueError(f"it is not a usable JSON schema: {problem}")
    return value


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class OutputSchema(_Strict):
    """Schema of the answer: the name of a class, or an inline JSON schema."""

    schema_: Annotated[Any, AfterValidator(_check_schema)] = Field(alias="schema")


class FrontMatter(_Strict):
    """Declarations of the front matter."""

    name: Annotated[str, AfterValidator(_check_name)]
    description: _Text
    version: Annotated[_Text, Field(max_length=64), BeforeValidator(_read_version)]
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    input: Annotated[
        dict[Annotated[str, AfterValidator(_check_variable)], _Stripped],
        Field(max_length=32),
        BeforeValidator(_read_inputs),
    ] = {}
    output: OutputSchema | None = None

    @property
    def output_schema(self) -> str | dict[str, Any] | None:
        """The schema of the answer; an inline one gets a title, by which LangChain names the function call."""
        schema = None if self.output is None else self.output.schema_
        if not isinstance(schema, dict):
            return schema
        return {"title": "".join(part.capitalize() for part in self.name.split("_")), **schema}


def parse_front_matter(text: str, first_line: int, report: Report) -> tuple[FrontMatter | None, Lines]:
    """Read the YAML between two ``---`` lines: its declarations (None if one is wrong), and the line of each key."""
    try:
        for event in yaml.parse(text, _LOADER):
            if isinstance(event, yaml.AliasEvent):  # a few nested ones would expand to gigabytes
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        node, data = yaml.compose(text, _LOADER), yaml.load(text, _LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2024-13-45
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        report(first_line + (mark.line if mark else 0), f"the front matter is not valid YAML: {problem}")
        return None, {}
    lines: Lines = {}
    for key, line in _key_lines(node, "", first_line):
        if lines.setdefault(key, line) != line:
            report(line, f"the key {key!r} appears twice")
    try:
        return FrontMatter.model_validate(data), lines
    except ValidationError as error:
        for problem in error.errors():
            _report_problem(problem, lines, first_line, report)
    return None, lines


def _report_problem(error: Any, lines: Lines, first_line: int, report: Report) -> None:
    """Report an error of Pydantic's at the line of its key, or of the nearest key above it."""
    path = ".".join(str(part) for part in error["loc"] if part != "[key]")  # Pydantic's mark of a wrong key
    nearest_key = path
    while nearest_key not in lines and "." in nearest_key:
        nearest_key = nearest_key.rpartition(".")[0]
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("missing", "extra_forbidden", "model_type"):
        message += f"; allowed keys: {', '.join(['schema'] if '.' in path else FrontMatter.model_fields)}"
    value = error["input"]
    text = str(value) if isinstance(value, str | int | float) else reprlib.repr(value)
    is_value = "" if error["type"] == "missing" else f" is {text[:60]!r}"
    report(lines.get(nearest_key, first_line), f"{path or 'the front matter'}{is_value}: {message}")


def _key_lines(node: Any, prefix: str, first_line: int) -> list[tuple[str, int]]:
    """List each key with its line, as ``input``, ``input.question``, ``output.schema``."""
    lines: list[tuple[str, int]] = []
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        path = f"{prefix}{key.value}"
        lines.append((path, first_line + key.start_mark.line))
        if path in ("input", "output"):
            lines += _key_lines(value, f"{path}.", first_line)
    return lines
