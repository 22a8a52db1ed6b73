"""What the schemas of this kit say to a model, in the language of the prompt.

A schema class describes itself and its fields in English; with a Chinese prompt a model must not be sent English.
The checks stay those of the class: only what ``model_json_schema`` says differs.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from rag_kit.prompts.schemas import SCHEMAS
from rag_kit.prompts.wording_zh import WORDING

_WORDINGS = {"zh": WORDING}


@lru_cache(maxsize=256)
def in_language(schema: type[BaseModel], language: str) -> type[BaseModel]:
    """The class whose JSON schema speaks a language.

    Args:
        schema: A class. One that is not of this kit, nor made from one, says what its author wrote.
        language: ``"en"`` or ``"zh"``.

    Returns:
        The class itself where nothing differs, else a class derived from it, of the same name.

    Example:
        >>> from rag_kit.prompts.schemas import Query
        >>> in_language(Query, "zh").model_json_schema()["properties"]["query"]["description"]
        '一个问题或检索词，脱离上下文也能看懂。'
        >>> in_language(Query, "en") is Query
        True
    """
    wording = _WORDINGS.get(language)
    if wording is None or not any(SCHEMAS.get(base.__name__) is base for base in schema.__mro__):
        return schema
    said = _reworded(schema.model_json_schema(), wording)

    def model_json_schema(cls: type[BaseModel], *args: Any, **kwargs: Any) -> dict[str, Any]:
        return copy.deepcopy(said)

    body = {
        "__module__": schema.__module__,
        "__doc__": said.get("description"),
        "model_json_schema": classmethod(model_json_schema),
    }
    kind: Any = type(schema)  # Pydantic's metaclass
    made: type[BaseModel] = kind(schema.__name__, (schema,), body)
    return made


def _reworded(schema: dict[str, Any], wording: dict[str, dict[str, str]]) -> dict[str, Any]:
    """A copy of a JSON schema in which each described class and field says the words of the table."""
    schema = copy.deepcopy(schema)
    for node in (schema, *schema.get("$defs", {}).values()):
        words = wording.get(str(node.get("title")), {})
        if "" in words:
            node["description"] = words[""]
        for name, field in node.get("properties", {}).items():
            if name in words:
                field["description"] = words[name]
    return schema
