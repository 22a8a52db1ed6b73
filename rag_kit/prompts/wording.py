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

from rag_kit.prompts.wording_zh import WORDING

_WORDINGS = {"zh": WORDING}
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
        The class itself where nothing differs, else a class derived from it, of the same name.

    Example:
        >>> from rag_kit.prompts.schemas import Query
        >>> said = for_model(Query, "zh", "把问题改写成检索词。").model_json_schema()
        >>> said["description"], said["properties"]["query"]["description"]
        ('把问题改写成检索词。', '一个问题或检索词，脱离上下文也能看懂。')
    """
    before = schema.model_json_schema()
    said = _reworded(before, schema, _WORDINGS.get(language, {}), description or _ANSWER.get(language, ""))
    if said == before:
        return schema

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


def _reworded(
    before: dict[str, Any], schema: type[BaseModel], wording: dict[str, dict[str, str]], description: str
) -> dict[str, Any]:
    """A copy of a class's JSON schema without what is for programmers; fields of ours say the words of the table."""
    said = copy.deepcopy(before)
    ours, made_from_ours = _is_ours(schema), any(map(_is_ours, schema.__mro__))
    for node in (said, *said.get("$defs", {}).values()):
        words = _FOR_PROGRAMMERS.split(str(node.pop("description", "")), maxsplit=1)[0].strip()
        if ours:
            words = description if node is said else ""
        if words:
            node["description"] = words
        table = wording.get(str(node.get("title")), {}) if made_from_ours else {}
        for name in table.keys() & node.get("properties", {}).keys():
            node["properties"][name]["description"] = table[name]
    return said


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "rag_kit"
