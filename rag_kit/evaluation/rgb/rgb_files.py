"""RGB's own files: ``en.json``, ``en_int.json``, ``en_fact.json``, ``en_refine.json``, and the same for ``zh``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._lines import find_file, read_jsonl
from rag_kit.evaluation.rgb.rules import Item, Part

LANGUAGES = ("en", "zh")
_MAX_LINE = 16 * 2**20
_ENDINGS = ("json", "jsonl", "json.gz", "jsonl.gz")


def load_rgb(folder: Path) -> tuple[list[Item], dict[str, str]]:
    """All questions of the folder, and which file which kind is from.

    The questions about noise are those of ``en_refine`` or ``en``. Where neither is there, the true passages of
    ``en_fact`` serve: that file has the same questions with noise, and a wrong copy of each true passage beside.

    Raises:
        InvalidInputError: If there is no such file, or a line is none of RGB's; the message names file and line.
    """
    items: list[Item] = []
    used: dict[str, str] = {}
    for language in LANGUAGES:
        for kind, names in (
            ("plain", (f"{language}_refine", language, f"{language}_fact")),
            ("integration", (f"{language}_int",)),
            ("counterfactual", (f"{language}_fact",)),
        ):
            path = find_file(folder, *(f"{name}.{ending}" for name in names for ending in _ENDINGS))
            if path is not None:
                used[f"{language} {kind}"] = path.name
                items += [
                    _item(record, where, language, kind) for where, record in read_jsonl(path, most=_MAX_LINE)
                ]
    if not items:
        raise InvalidInputError(
            f"{str(folder)!r} holds no file of RGB; it needs en.json, en_int.json, en_fact.json, or the same for zh"
        )
    return items, used


def _item(record: Mapping[str, Any], where: str, language: str, kind: str) -> Item:
    question, answer = record.get("query"), record.get("answer")
    if not isinstance(question, str) or not isinstance(record.get("id"), (int, str)):
        raise InvalidInputError(f"{where}: a question of RGB has id and query; this has {', '.join(record)}")
    parts = tuple(_part(part, where) for part in (answer if isinstance(answer, list) else [answer]))
    positive = record.get("positive")
    groups = positive if kind == "integration" else [positive]
    if not isinstance(groups, list):
        raise InvalidInputError(f"{where}: positive is {positive!r:.80}; give a list of passages")
    wrong = _texts(record.get("positive_wrong"), where, "positive_wrong") if kind == "counterfactual" else ()
    return Item(
        str(record["id"]), language, question, parts,
        tuple(_texts(group, where, "positive") for group in groups),
        _texts(record.get("negative"), where, "negative"), wrong, kind,
    )  # fmt: skip


def _part(value: Any, where: str) -> Part:
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return tuple(value)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{where}: answer is {value!r:.80}; give a text, or lists of alternatives")
    return value


def _texts(value: Any, where: str, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInputError(f"{where}: {field} is {value!r:.80}; give a list of passages")
    return tuple(value)
