"""The form an answer must have: a Pydantic class or an inline JSON schema, seen in one way."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.json_schema import schema_problem
from rag_kit.prompts.wording import for_model

from .json_schema import UnreadableError, validate_json

_TRUE = frozenset({"yes", "true", "y", "是", "对", "相关", "正确", "真"})
_FALSE = frozenset({"no", "false", "n", "否", "不", "不是", "不对", "不相关", "错误", "假"})
_WRAPPERS = frozenset(
    {"arguments", "parameters", "properties", "result", "output", "answer", "response", "data"}
)
_NOT_VALUES = frozenset({"error", "errors", "message", "refusal", "type", "detail"})


class Target:
    """What a structured call must produce.

    Args:
        schema: A Pydantic class, or a JSON schema of an object.
        language: The language of the prompt: classes of this kit describe themselves in it.
        description: What a class of this kit says it is for: the description of the prompt.

    Raises:
        InvalidInputError: It is neither.
    """

    def __init__(
        self, schema: type[BaseModel] | Mapping[str, Any], language: str = "en", description: str = ""
    ) -> None:
        self._sent: type[BaseModel] | None = None
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            self.model: type[BaseModel] | None = schema
            self._sent = for_model(schema, language, description)
            self.json_schema: dict[str, Any] = self._sent.model_json_schema()
        elif isinstance(schema, Mapping):
            if (problem := schema_problem(dict(schema))) is not None:
                raise InvalidInputError(f"The JSON schema for a structured call is wrong: {problem}.")
            self.model = None
            self.json_schema = {
                "title": "Output",
                "description": "答案。" if language == "zh" else "The answer.",
                **copy.deepcopy(dict(schema)),
            }
        else:
            raise InvalidInputError(
                f"schema must be a Pydantic class or a JSON schema (a dict), not {schema!r}; "
                "for plain text use text_call"
            )

    @property
    def native(self) -> Any:
        """What ``with_structured_output`` gets: the class itself, or a copy of the JSON schema."""
        return self._sent or copy.deepcopy(self.json_schema)

    @cached_property
    def text(self) -> str:
        """The JSON schema as it stands in a prompt."""
        return json.dumps(self.json_schema, ensure_ascii=False)

    @property
    def name(self) -> str:
        """The schema's title."""
        return str(self.json_schema.get("title", "Output"))

    @cached_property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Field name -> its JSON schema, references resolved one level."""
        return {name: self._resolve(field) for name, field in self.json_schema.get("properties", {}).items()}

    @cached_property
    def required(self) -> list[str]:
        """Names of the fields that must be there."""
        return [name for name in self.json_schema.get("required", []) if name in self.fields]

    @cached_property
    def only_field(self) -> str | None:
        """The one field that must be filled, if there is just one."""
        names = self.required or list(self.fields)
        return names[0] if len(names) == 1 else None

    def kind(self, name: str) -> str:
        """``"string"``, ``"boolean"``, ``"number"``, ``"integer"``, ``"strings"`` (a list of them) or ``"other"``."""
        return self._kinds[name]

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {name: self._kind(field) for name, field in self.fields.items()}

    def _kind(self, field: dict[str, Any]) -> str:
        options = [self._resolve(option) for option in field.get("anyOf", [])] or [field]
        for option in options:
            kind = option.get("type")
            if kind == "array" and self._resolve(option.get("items", {})).get("type") == "string":
                return "strings"
            if kind in ("string", "boolean", "number", "integer"):
                return str(kind)
        return "other"

    def accept(self, value: Any) -> Any:
        """Validate a parsed value, forgiving its form but never its content.

        Forgiven: case and dashes in names, fields that the schema does not know, a wrapper around the object, a
        bare list or string for the only field, "yes" for true, "8" for 8.

        Args:
            value: What came out of JSON, a tool call or tags.

        Returns:
            An instance of the class, or a plain dict.

        Raises:
            UnreadableError: It does not fit; the message says where.
        """
        if self.model is not None and isinstance(value, self.model):
            # a client that parsed by itself made the class that was sent; callers get the one they named
            changed = type(value) is self._sent is not self.model
            return self._validate(value.model_dump()) if changed else value
        if isinstance(value, BaseModel):
            value = value.model_dump()
        problem: UnreadableError | None = None
        for candidate in self._readings(value):
            try:
                return self._validate(candidate)
            except UnreadableError as error:
                problem = problem or error
        raise problem or UnreadableError(
            f"expected an object with {', '.join(self.fields)}, not {type(value).__name__}"
        )

    def _readings(self, value: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            value = value[0] if self.only_field is None or self.kind(self.only_field) != "strings" else value
        if isinstance(value, dict):
            found.append(self._named(value))
            for key, inner in value.items():
                if isinstance(inner, dict) and (
                    str(key).lower() in _WRAPPERS or _plain(key) == _plain(self.name)
                ):
                    found.append(self._named(inner))
            if self.only_field and len(value) == 1:
                ((key, inner),) = value.items()
                if str(key).lower() not in _NOT_VALUES and not isinstance(inner, dict):
                    found.append({self.only_field: inner})
        elif self.only_field and isinstance(value, list | str):
            found.append({self.only_field: value})
        return [{name: self._loosen(name, v) for name, v in reading.items()} for reading in found]

    @cached_property
    def _plain_names(self) -> dict[str, str]:
        return {_plain(name): name for name in self.fields}

    def _named(self, value: dict[Any, Any]) -> dict[str, Any]:
        if value.keys() <= self.fields.keys():
            return dict(value)
        names = self._plain_names
        known = {names[_plain(key)]: item for key, item in value.items() if _plain(key) in names}
        if self.model is None and self.json_schema.get("additionalProperties", True) is not False:
            known.update({str(key): item for key, item in value.items() if _plain(key) not in names})
        return known

    def _loosen(self, name: str, value: Any) -> Any:
        if name not in self.fields:
            return value
        kind = self.kind(name)
        if kind == "strings":
            if isinstance(value, str):
                value = [line.strip() for line in value.splitlines()]
            if isinstance(value, list):
                return [
                    item for item in map(_bare, value) if not (isinstance(item, str) and not item.strip())
                ]
        elif kind == "string" and isinstance(value, dict | list):
            return _bare(value[0] if isinstance(value, list) and len(value) == 1 else value)
        elif isinstance(value, str) and kind == "boolean":
            word = value.strip().strip("。.！!*\"'").lower()
            return True if word in _TRUE else False if word in _FALSE else value
        elif isinstance(value, str) and kind in ("number", "integer") and self.model is None:
            with suppress(ValueError):  # a class converts it by itself
                return int(value) if value.strip().isdecimal() else float(value)
        return value

    def _validate(self, value: dict[str, Any]) -> Any:
        if self.model is None:
            return validate_json(value, self.json_schema)
        try:
            return self.model.model_validate(value)
        except ValidationError as error:
            parts = [
                f"{'.'.join(map(str, each['loc'])) or self.name}: {each['msg']}"
                for each in error.errors()[:5]
            ]
            raise UnreadableError("; ".join(parts)) from None

    def _resolve(self, field: Any) -> dict[str, Any]:
        if not isinstance(field, dict):
            return {}
        reference = field.get("$ref", "")
        if reference.startswith("#/$defs/"):
            found = self.json_schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
            return found if isinstance(found, dict) else {}
        return field


_target_of_class = lru_cache(maxsize=256)(Target)


def target_of(
    schema: type[BaseModel] | Mapping[str, Any], language: str = "en", description: str = ""
) -> Target:
    """The target of a schema; that of a class is made once, for calls are made per passage.

    Raises:
        InvalidInputError: As ``Target``.
    """
    if isinstance(schema, type):
        return _target_of_class(schema, language, description)
    return Target(schema, language)


def _plain(name: Any) -> str:
    return re.sub(r"[\s_-]+", "", str(name)).lower()


def _bare(item: Any) -> Any:
    """The one string in a one-key object, as in ``{"query": "..."}`` for a plain string."""
    if isinstance(item, dict):
        strings = [value for value in item.values() if isinstance(value, str)]
        if len(strings) == 1:
            return strings[0].strip()
    return item.strip() if isinstance(item, str) else item
