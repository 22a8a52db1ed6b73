"""Ragas's prompts in Chinese, instruction and examples: files of ``prompts/ragas``, each of one English original."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from functools import cache
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.library import packaged_folder

_log = logging.getLogger(__name__)


def chinese_prompt(prompt: Any) -> Any | None:
    """A prompt of Ragas's in Chinese; ``None`` where there is none of just this original.

    Of an original that another version of Ragas has changed the log says so once; the judge then translates it.
    """
    original, kind = original_hash(prompt), type(prompt).__name__
    path, record = _records().get(original) or (None, {})
    if path is None:
        if any(other["of"] == kind for _, other in _records().values()):
            _say_changed(kind, original)
        return None
    chinese = copy.copy(prompt)
    try:
        chinese.instruction = record["instruction"]
        chinese.examples = [
            (
                prompt.input_model.model_validate(example["input"]),
                prompt.output_model.model_validate(example["output"]),
            )
            for example in record["examples"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{path.name} does not fit {kind} of Ragas: {error}; install rag-kit again"
        ) from error
    chinese.language = "chinese"
    return chinese


def original_hash(prompt: Any) -> str:
    """A hash of a prompt's instruction and examples; that of a prompt without them fits no file."""
    examples = [[part.model_dump(mode="json") for part in pair] for pair in getattr(prompt, "examples", ())]
    text = json.dumps([getattr(prompt, "instruction", ""), examples], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def shipped_digest() -> str:
    """A hash of all files, for the record of what was sent."""
    contents = b"".join(
        path.read_bytes() for path, _ in sorted(_records().values(), key=lambda pair: pair[0].name)
    )
    return hashlib.sha256(contents).hexdigest()[:16]


@cache
def _records() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Hash of the original -> file and content."""
    import yaml

    paths = sorted((packaged_folder() / "ragas").glob("*.zh.yaml"))
    records = [(path, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in paths]
    return {record["original"]: (path, record) for path, record in records}


@cache
def _say_changed(kind: str, original: str) -> None:
    _log.warning(
        "%s of this version of Ragas (%s) is not what its Chinese prompt was made of: the judge translates it",
        kind,
        original,
    )
