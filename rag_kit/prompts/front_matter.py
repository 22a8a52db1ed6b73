"""The YAML block at the top of a prompt file, read strictly and with line numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from rag_kit.prompts.body import Report
from rag_kit.prompts.json_schema import schema_problem
from rag_kit.prompts.schemas import SCHEMAS

KEYS = ("name", "description", "version", "input", "output")
MAX_INPUTS = 32
MAX_DEPTH = 16
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Words that mean something else: helpers of Handlebars and dotprompt, and what LangChain keeps for itself.
RESERVED_VARIABLES = frozenset(
    {"role", "media", "json", "section", "if", "unless", "each", "with", "else", "log", "lookup", "this"}
    | {"true", "false", "null", "undefined", "stop", "self"}
)


@dataclass(frozen=True)
class FrontMatter:
    """What the front matter declares; `lines` maps a key (``"input.question"``) to its line in the file."""

    name: str
    description: str
    version: str
    inputs: dict[str, str]
    schema: str | dict[str, Any] | None
    lines: dict[str, int] = field(default_factory=dict)


class _Loader(yaml.SafeLoader):
    """SafeLoader that also refuses aliases, repeated keys and deep nesting."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = cast(Any, self).peek_event()
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*) are not allowed; write the value out", problem_mark=mark
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} appears twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_front_matter(text: str, first_line: int, report: Report) -> FrontMatter | None:
    """Read and check the YAML between the two ``---`` lines.

    Args:
        text: The YAML text.
        first_line: Line number of its first line within the file, from 1.
        report: Called with (line, message) for each thing that is wrong.

    Returns:
        The declarations, to be used only when nothing was reported; None when not even the inputs are known.
    """
    try:
        loader: Any = _Loader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = first_line + (mark.line if mark is not None else 0)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        report(line, f"the front matter is not valid YAML: {problem}")
        return None
    if not isinstance(data, dict):
        report(first_line, f"the front matter must be 'key: value' lines; allowed keys: {', '.join(KEYS)}")
        return None
    lines = _key_lines(node, first_line)
    for key in data:
        if key not in KEYS:
            report(lines.get(str(key), first_line), f"unknown key {key!r}; allowed keys: {', '.join(KEYS)}")
    for key in ("name", "description", "version"):
        if key not in data:
            report(
                first_line, f"the key {key!r} is missing; 'name', 'description' and 'version' are required"
            )

    def at(key: str) -> int:
        return lines.get(key, first_line)

    name = data.get("name")
    if "name" in data and not (isinstance(name, str) and NAME.fullmatch(name)):
        report(
            at("name"),
            f"name is {name!r}; allowed: lower-case letters, digits and _, a letter first, up to 64",
        )
    description = data.get("description")
    if "description" in data and not (isinstance(description, str) and description.strip()):
        report(at("description"), "description must be a line of text")
    version = data.get("version")
    whole = isinstance(version, int) and not isinstance(version, bool) and version >= 1
    if "version" in data and not (whole or (isinstance(version, str) and 0 < len(version.strip()) <= 64)):
        report(at("version"), f"version is {version!r}; allowed: a whole number from 1, or text in quotes")
    inputs = _inputs(data.get("input"), at, report)
    if inputs is None:  # with half of the inputs known, the body could not be judged
        return None
    schema = _schema(data.get("output"), "output" in data, str(name), at, report)
    # dotprompt wants text here; a bare number is what people write, and means the same
    return FrontMatter(str(name), str(description).strip(), str(version).strip(), inputs, schema, lines)


def _key_lines(node: Any, first_line: int) -> dict[str, int]:
    """Line of each key down to three levels, as ``input``, ``input.schema``, ``input.schema.question``."""
    lines: dict[str, int] = {}

    def walk(mapping: Any, prefix: str, depth: int) -> None:
        if not isinstance(mapping, yaml.MappingNode) or depth == 0:
            return
        for key, value in mapping.value:
            path = f"{prefix}{key.value}"
            lines[path] = first_line + key.start_mark.line
            walk(value, f"{path}.", depth - 1)

    walk(node, "", 3)
    return lines


def _inputs(data: Any, at: Callable[[str], int], report: Report) -> dict[str, str] | None:
    """The declared variables, ``input: {variable: text}`` or the same under ``input.schema``; None if one is wrong."""
    if data is None:
        return {}
    prefix, wrong = "input", []
    if isinstance(data, dict) and isinstance(data.get("schema"), dict):
        wrong = [
            (f"input.{key}", f"unknown key {key!r} beside input.schema") for key in data if key != "schema"
        ]
        data, prefix = data["schema"], "input.schema"
    if not isinstance(data, dict):
        wrong.append(("input", "input must be 'variable: what it holds' lines"))
    elif len(data) > MAX_INPUTS:
        wrong.append((prefix, f"{len(data)} inputs are declared; at most {MAX_INPUTS} are allowed"))
    else:
        problems = ((key, _input_problem(key, value)) for key, value in data.items())
        wrong += [(f"{prefix}.{key}", f"the input {key!r} {problem}") for key, problem in problems if problem]
    for key, message in wrong:
        report(at(key), message)
    return None if wrong else {key: value.strip() for key, value in data.items()}


def _input_problem(name: Any, text: Any) -> str | None:
    if not (isinstance(name, str) and VARIABLE.fullmatch(name)):
        return "is not a variable name; allowed: letters, digits and _, no digit first"
    if name in RESERVED_VARIABLES or name.startswith("__"):
        return "is a reserved word; choose another name"
    if not isinstance(text, str):
        return f"must have a text that says what it holds, not {text!r}"
    return None


def _schema(
    data: Any, given: bool, name: str, at: Callable[[str], int], report: Report
) -> str | dict[str, Any] | None:
    """The declared output: a class of schemas.py by name, an inline JSON schema, or none."""
    if not given:
        return None
    if not isinstance(data, dict) or set(data) != {"schema"}:
        report(
            at("output"), "output must hold one key, 'schema'; leave output out when the answer is plain text"
        )
        return None
    schema, line = data["schema"], at("output.schema")
    if isinstance(schema, str):
        if schema not in SCHEMAS:
            report(
                line, f"unknown schema {schema!r}; allowed: {', '.join(SCHEMAS)}, or an inline JSON schema"
            )
        return schema
    problem = schema_problem(schema)
    if problem:
        report(line, f"output.schema is not a usable JSON schema: {problem}")
        return None
    # LangChain names the function call after the title, and refuses a schema without one.
    return {"title": "".join(part.capitalize() for part in name.split("_")), **schema}
