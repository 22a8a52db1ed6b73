"""Ragas's prompts in Chinese, instruction and examples: files of ``prompts/ragas``, each of one English original."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from functools import cache
from typing import Any

from rag_kit.prompts.library import packaged_folder

_log = logging.getLogger(__name__)


def chinese_prompt(prompt: Any) -> Any | None:
    """Return a prompt of Ragas's in Chinese; ``None`` if no file has a translation of exactly this prompt."""
    record = _find_record(type(prompt).__name__, original_hash(prompt))
    if record is None:
        return None
    chinese = copy.copy(prompt)
    chinese.instruction, chinese.language = record["instruction"], "chinese"
    chinese.examples = [
        (prompt.input_model.model_validate(pair["input"]), prompt.output_model.model_validate(pair["output"]))
        for pair in record["examples"]
    ]
    return chinese


def original_hash(prompt: Any) -> str:
    """Hash a prompt's instruction and examples."""
    examples = [[part.model_dump(mode="json") for part in pair] for pair in getattr(prompt, "examples", ())]
    return _hash([getattr(prompt, "instruction", ""), examples])


@cache
def chinese_digest() -> str:
    """Hash all files, for the record of what was sent."""
    return _hash(_records())


@cache
def _records() -> list[Any]:
    import yaml

    paths = sorted((packaged_folder() / "ragas").glob("*.zh.yaml"))
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]


@cache
def _find_record(kind: str, original: str) -> dict[str, Any] | None:
    """Return the translation of the prompt with this hash; warn if there is only one of another version of it."""
    for record in _records():
        if record["original"] == original:
            return dict(record)
    if any(record["of"] == kind for record in _records()):
        message = "%s of this version of Ragas (%s) is not what its Chinese prompt was made of: the judge translates it"
        _log.warning(message, kind, original)
    return None


def _hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
