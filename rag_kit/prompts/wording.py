"""What a schema says to a model: words for the model, in the language of the prompt.

A Pydantic class says its docstring and its fields' descriptions. The docstring of a class of this kit is for
programmers, so the description of the prompt file takes its place; of any other class goes out what stands before
the first section (``Args:``, ``Example:``...) or doctest. The checks stay those of the class.
"""

from __future__ import annotations

import copy
import re
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from rag_kit.prompts.fields import CHINESE

_ANSWER = {"en": "The answer.", "zh": "答案。"}
_FOR_PROGRAMMERS = re.compile(
    r"^[ \t]*(?:>>>|(?:Args|Arguments|Attributes|Examples?|Notes?|Parameters|Raises|Returns|See Also|Yields):[ \t]*$)",
    re.MULTILINE,
)


@lru_cache(maxsize=256)
def for_model(schema: type[BaseModel], language: str, description: str = "") -> type[BaseModel]:
    """The class whose JSON schema is written for a model, in a language.

    `description` takes the place of the docstring of a class of this kit.

    Returns:
        A class derived from it, of the same name.

    Example:
        >>> from rag_kit.prompts.schemas import Query
        >>> said = for_model(Query, "zh", "把问题改写成检索词。").model_json_schema()
        >>> said["description"], said["properties"]["query"]["description"]
        ('把问题改写成检索词。', '一个问题或检索词，脱离上下文也能看懂。')
    """
    said = schema.model_json_schema()
    ours = schema.__module__.partition(".")[0] == "rag_kit"
    for node in (said, *said.get("$defs", {}).values()):
        words = _FOR_PROGRAMMERS.split(str(node.pop("description", "")), maxsplit=1)[0].strip()
        if ours:
            words = (description or _ANSWER.get(language, "")) if node is said else ""
        if words:
            node["description"] = words
        for field in node.get("properties", {}).values():
            if language == "zh" and field.get("description") in CHINESE:
                field["description"] = CHINESE[field["description"]]

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
