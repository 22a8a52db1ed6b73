"""The form an answer must have: a Pydantic class or a JSON schema, seen in one way, and what fits it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from pydantic import AllowInfNan, BaseModel, ValidationError

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.fields import Form, for_model, split_lines
from rag_kit.prompts.front_matter import schema_problem

Schema = type[BaseModel] | Mapping[str, Any]

_TRUE = frozenset({"yes", "true", "y", "是", "对", "相关", "正确", "真"})
_FALSE = frozenset({"no", "false", "n", "否", "不", "不是", "不对", "不相关", "错误", "假"})
_WRAPPERS = {"arguments", "parameters", "properties", "result", "output", "answer", "response", "data"}
_MAX_PROBLEMS = 5
NOTHING = "there is no JSON object in it"
# Bounds of a schema that ends.
_LEAST_TEXT = 80  # characters
_MOST_TEXT = 1_500  # llama.cpp refuses a grammar in which a character is repeated 2,000 times
_LEAST_VALUE = 10  # characters of a number, a boolean, or one of several words
_MOST_ITEMS = 32
_MAX_DEPTH = 16
_TENTHS = [number / 10 for number in range(11)]
_NOT_VALUES = frozenset({"error", "errors", "message", "refusal", "type", "detail"})


class UnreadableError(ValueError):
    """An answer holds no value that fits; the message says where and what was expected.

    Its ``kind`` is "truncated" where JSON breaks off, "unfit" where an object has a wrong field, "refused" where the
    model declined to answer, else "".
    """

    def __init__(self, problem: str, kind: Literal["", "truncated", "unfit", "refused"] = "") -> None:
        super().__init__(problem)
        self.kind = kind


class Target:
    """Form that a structured call must produce: a Pydantic class, or a JSON schema of an object.

    A class of this kit describes itself in the language of the prompt, by the prompt's description. Of each field,
    ``fields`` has the JSON schema, references resolved one level, and ``kinds`` says "string", "boolean", "number",
    "integer", "strings" (a list) or "other". ``only_field`` is the one that must be filled, if there is just one.
    """

    def __init__(self, schema: Schema, language: str = "en", description: str = "") -> None:
        self.model: type[BaseModel] | None = None
        self._sent: type[BaseModel] | None = None
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            self.model, self._sent = schema, for_model(schema, language, description)
            self.json_schema = self._sent.model_json_schema()
        elif isinstance(schema, Mapping):
            if (problem := schema_problem(dict(schema))) is not None:
                raise InvalidInputError(f"The JSON schema for a structured call is wrong: {problem}.")
            words = "答案。" if language == "zh" else "The answer."
            self.json_schema = {"title": "Output", "description": words, **copy.deepcopy(dict(schema))}
        else:
            raise InvalidInputError(
                f"schema must be a Pydantic class or a JSON schema (a dict), not {schema!r}; "
                "for plain text use text_call"
            )
        self.name = str(self.json_schema.get("title", "Output"))
        self.text = json.dumps(self.json_schema, ensure_ascii=False)
        properties = self.json_schema.get("properties", {})
        self.fields = {name: self._resolve(field) for name, field in properties.items()}
        self.kinds = {name: self._field_kind(field) for name, field in self.fields.items()}
        self.required = [name for name in self.json_schema.get("required", []) if name in self.fields]
        needed = self.required or list(self.fields)
        self.only_field = needed[0] if len(needed) == 1 else None
        self._names_by_key = {_name_key(name): name for name in self.fields}
        self._wrappers = _WRAPPERS | {_name_key(self.name)}

    @property
    def native(self) -> Any:
        """The argument of ``with_structured_output``: the class itself, or a copy of the JSON schema."""
        return self._sent or copy.deepcopy(self.json_schema)

    def _field_kind(self, field: dict[str, Any]) -> str:
        """Return a field's entry of ``kinds``; of alternatives (``anyOf``) the first one with another than "other"."""
        options = [self._resolve(option) for option in field.get("anyOf", [])] or [field]
        for option in options:
            json_type = option.get("type")
            if json_type == "array" and self._resolve(option.get("items", {})).get("type") == "string":
                return "strings"
            if json_type in ("string", "boolean", "number", "integer"):
                return str(json_type)
        return "other"

    def _resolve(self, field: Any) -> dict[str, Any]:
        return resolve(field, self.json_schema.get("$defs", {}))

    def accept(self, value: Any) -> Any:
        """Validate one value, as ``accept_first`` does."""
        return self.accept_first([value])

    def accept_first(self, values: Iterable[Any]) -> Any:
        """Return the first value that fits, validated: an instance of the class, or a dict for a JSON schema.

        Forgiven: case and dashes in names, fields that the schema does not know, a wrapper around the object, a
        bare list or string for the only field, "yes" for true, "8" for 8. If none fits, the UnreadableError of the
        first one is raised.
        """
        first_error: UnreadableError | None = None
        for value in values:
            if isinstance(value, BaseModel):
                if self.model is not None and isinstance(value, self.model) and type(value) is not self._sent:
                    return value
                # a client that parses by itself returns the class that was sent; the caller wants the one it named
                value = value.model_dump(warnings=False)  # a field may hold a value of another type
            objects = self._possible_objects(value)
            for fields in objects:
                converted: dict[str, Any] = {}
                for name, item in fields.items():  # a comprehension is a frame more before Python 3.12
                    converted[name] = self._convert(name, item)
                try:
                    return self._validate(converted)
                except UnreadableError as error:
                    first_error = first_error or error
            if not objects and first_error is None:
                expected = f"an object with {', '.join(self.fields)}"
                first_error = UnreadableError(f"expected {expected}, not {type(value).__name__}")
        raise first_error or UnreadableError(NOTHING)

    def _possible_objects(self, value: Any) -> list[dict[str, Any]]:
        """List the objects that a value may mean: itself, one under a key such as "result", or its only field."""
        only_name = self.only_field
        wants_list = only_name is not None and self.kinds[only_name] == "strings"
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and not wants_list:
            value = value[0]
        if only_name is not None and isinstance(value, list | str):
            return [{only_name: value}]
        if not isinstance(value, dict):
            return []
        wrapped = [
            item for key, item in value.items() if isinstance(item, dict) and _name_key(key) in self._wrappers
        ]
        is_call = "name" in value and self._is_tool_call(value)
        likeliest_first = (*wrapped, value) if is_call else (value, *wrapped)
        objects = list(map(self._with_known_names, likeliest_first))
        if only_name is not None and len(value) == 1:  # the only field under another name
            [(key, item)] = value.items()
            if str(key).lower() not in _NOT_VALUES and not isinstance(item, dict):
                objects.append({only_name: item})
        return objects

    def _is_tool_call(self, value: dict[Any, Any]) -> bool:
        """Tell whether an object is a tool call as text: the schema's name under "name", and none of its fields."""
        others = {*map(_name_key, value)} - {"name"}
        return _name_key(value.get("name")) == _name_key(self.name) and others.isdisjoint(self._names_by_key)

    def _with_known_names(self, value: dict[Any, Any]) -> dict[str, Any]:
        """Rename keys to the schema's names; drop others, unless the schema allows them or the class reads them."""
        is_open = self.model is None and self.json_schema.get("additionalProperties", True) is not False
        is_open = is_open or getattr(self.model, "reads_other_fields", False)
        renamed = {}
        for key, item in value.items():
            name = key if key in self.fields else self._names_by_key.get(_name_key(key))
            if name is not None:
                renamed[name] = item
            elif is_open:
                renamed[str(key)] = item
        return renamed

    def _convert(self, name: str, value: Any) -> Any:
        """Convert a value that a model wrote in another type to the type of its field."""
        kind = self.kinds.get(name)
        if kind == "strings":
            items = value if isinstance(value, list) else split_lines(value)
            if not isinstance(items, list):
                return items
            texts = list(map(_single_string, items))
            return [text for text in texts if text != ""]
        if kind == "string" and isinstance(value, dict | list):
            is_single = isinstance(value, list) and len(value) == 1
            return _single_string(value[0] if is_single else value)
        if kind == "boolean" and isinstance(value, str):
            word = value.strip().strip("。.！!*\"'").lower()
            return word in _TRUE if word in _TRUE | _FALSE else value
        if kind not in ("number", "integer"):
            return value
        if self.model is not None:
            # Pydantic itself reads "8", and would take true for 1: as "True" it is refused
            is_flag = isinstance(value, bool) and "enum" not in self.fields[name]
            return str(value) if is_flag else value
        if isinstance(value, str):
            with suppress(ValueError):
                return int(value) if value.strip().isdecimal() else float(value)
        return value

    def _validate(self, value: dict[str, Any]) -> Any:
        """Validate a value; raise with the path of each part that does not fit."""
        result: Any = value
        problems: list[tuple[Iterable[Any], str]] = []
        if self.model is None:
            problems = _json_problems(value, self.json_schema) or _not_finite(value)
        else:
            try:
                result = self.model.model_validate(value)
                if not issubclass(self.model, Form):  # whose readers drop bad entries one by one
                    problems = _not_finite(_given_fields(result))
            except ValidationError as error:
                errors = error.errors()[:_MAX_PROBLEMS]
                problems = [(item["loc"] or (self.name,), item["msg"]) for item in errors]
        if problems:
            lines = (".".join(map(str, path)) + ": " + text for path, text in problems)
            # the path of the whole value is empty
            raise UnreadableError("; ".join(line.removeprefix(": ") for line in lines), "unfit")
        return result


def _not_finite(value: Mapping[str, Any]) -> list[tuple[Iterable[Any], str]]:
    """Return path and message of each field with a number that JSON does not have: NaN, Infinity, 1e999."""
    problems: list[tuple[Iterable[Any], str]] = []
    for name, item in value.items():
        try:
            json.dumps(item, allow_nan=False, skipkeys=True, default=_given_fields)
        except (ValueError, RecursionError):
            problems.append(((name,), "a number in it is not finite, or it is nested too deeply"))
    return problems


def _given_fields(value: Any) -> Any:
    """Return the fields of an instance that were set, without those that may be NaN; {} for any other object."""
    if not isinstance(value, BaseModel) or value.model_config.get("allow_inf_nan"):
        return {}
    may_be_nan = {name for name, field in type(value).model_fields.items() if AllowInfNan() in field.metadata}
    return {name: getattr(value, name) for name in value.model_fields_set - may_be_nan}


def _json_problems(value: Any, schema: Mapping[str, Any]) -> list[tuple[Iterable[Any], str]]:
    """Return path and message of the first five parts of a value that do not fit a JSON schema."""
    from jsonschema import Draft202012Validator  # takes 0.13 s; only for schemas that are not classes
    from referencing import Registry

    # a registry that knows no other schema, so that no reference is fetched from the network
    errors = Draft202012Validator(schema, registry=Registry()).iter_errors(value)
    try:
        return [(error.absolute_path, error.message) for error in islice(errors, _MAX_PROBLEMS)]
    except RecursionError:
        raise UnreadableError("nested too deeply") from None


_target_of_class = lru_cache(maxsize=256)(Target)


def target_of(schema: Schema, language: str = "en", description: str = "") -> Target:
    """Return the target of a schema; that of a class is made once, for calls are made per passage."""
    if isinstance(schema, type):
        return _target_of_class(schema, language, description)
    return Target(schema, language)


def _name_key(name: Any) -> str:
    """Return a field's name without case, blanks and dashes, for comparison."""
    return re.sub(r"[\s_-]+", "", str(name)).lower()


def _single_string(item: Any) -> Any:
    """Return the only string in an object, such as ``{"query": "..."}``; strip a string; leave anything else."""
    if isinstance(item, dict):
        strings = [value for value in item.values() if isinstance(value, str)]
        item = strings[0] if len(strings) == 1 else item
    return item.strip() if isinstance(item, str) else item


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Copy a schema for OpenAI's strict mode: every field required, no others allowed, no defaults.

    None if a part of it allows fields of any name, which strict mode cannot express.
    """
    copied = copy.deepcopy(dict(schema))
    return copied if _make_strict(copied) else None


def _make_strict(node: Any) -> bool:
    """Make a part of a schema strict in place; return False, with the part half changed, if it cannot be strict."""
    if not isinstance(node, dict):
        return True
    node.pop("default", None)
    if node.get("type") == "object" or "properties" in node:
        if not node.get("properties") or node.get("additionalProperties") not in (None, False):
            return False
        node["additionalProperties"] = False
        node["required"] = list(node["properties"])
    parts = [node["items"]] if "items" in node else []
    parts += [option for key in ("anyOf", "allOf", "oneOf") for option in node.get(key, [])]
    parts += [part for key in ("properties", "$defs") for part in node.get(key, {}).values()]
    return all(map(_make_strict, parts))


def ending_schema(
    schema: Mapping[str, Any], chars: int, form: type[BaseModel] | None = None
) -> dict[str, Any]:
    """Copy a schema with bounds, so that an answer decoded by it ends after about ``chars`` characters.

    A number from 0 to 1 becomes one of the tenths, for grammars made of a schema know no largest number. The checks of
    a ``form``, which its schema does not name, are added: several providers refuse them, so first requests lack them.
    """
    copied = copy.deepcopy(dict(schema))
    for name, field in form.model_fields.items() if form else ():
        node = copied["properties"].get(name, {})
        if any(getattr(check, "le", None) == 1 for check in field.metadata):
            node.update(minimum=0, maximum=1)
        if node.get("type") == "array" and any(getattr(check, "min_length", 0) for check in field.metadata):
            node["minItems"] = 1
    _bound(copied, chars, copied.get("$defs", {}), 0)
    return copied


def _bound(node: Any, chars: int, definitions: Mapping[str, Any], depth: int) -> None:
    """Bound a part of a schema in place, so that its value takes about ``chars`` characters."""
    node = resolve(node, definitions)
    if depth > _MAX_DEPTH:
        return
    if node.get("type") == "array":
        # half of the items that would fit at least size, so that each may be twice as long
        items = chars // (2 * _least_chars(node.get("items"), definitions, depth))
        node["maxItems"] = max(1, min(items, node.get("maxItems", _MOST_ITEMS)))
        _bound(node.get("items"), chars // node["maxItems"], definitions, depth + 1)
    elif _is_text(node):
        node["maxLength"] = min(max(chars, _LEAST_TEXT), node.get("maxLength", _MOST_TEXT), _MOST_TEXT)
    elif node.get("type") == "number" and (node.get("minimum"), node.get("maximum")) == (0, 1):
        node["enum"] = _TENTHS
    parts = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
    for part in parts:
        _bound(part, chars // len(parts), definitions, depth + 1)


def _least_chars(node: Any, definitions: Mapping[str, Any], depth: int) -> int:
    """Return about how many characters a part of a schema needs; for a list those of one entry."""
    node = resolve(node, definitions)
    if depth > _MAX_DEPTH:
        return _LEAST_TEXT
    if node.get("type") == "array":
        return _least_chars(node.get("items"), definitions, depth + 1)
    if properties := node.get("properties"):
        parts = properties.items()
        return sum(len(name) + _least_chars(part, definitions, depth + 1) for name, part in parts)
    return _LEAST_TEXT if _is_text(node) else _LEAST_VALUE


def _is_text(node: Mapping[str, Any]) -> bool:
    """Tell whether a part of a schema is a text that may say anything."""
    return node.get("type") == "string" and "enum" not in node


def resolve(node: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a reference to the definition that it names; {} for a node or definition that is no schema."""
    if not isinstance(node, dict):
        return {}
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    target = definitions.get(name, node)
    return target if isinstance(target, dict) else {}
