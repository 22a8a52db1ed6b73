"""Writing a set as JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import check_target, write_jsonl
from rag_kit.evaluation.sets.files import stem

if TYPE_CHECKING:
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet


def save(examples: EvaluationSet, path: Path) -> Path:
    """See `EvaluationSet.save`."""
    if path.suffix != ".jsonl":
        raise InvalidInputError(f"the name is {path.name!r}; give one that ends in .jsonl")
    check_target(path)
    header: dict[str, Any] = {}
    if examples.name != stem(path):
        header["name"] = examples.name
    if examples.corpus is not None:
        header["corpus"] = len(examples.corpus)
    rows = [{"evaluation_set": header}] if header else []
    rows += [example.to_json() for example in examples]
    for passage in examples.corpus or ():
        record = {"id": passage.id, "text": passage.text}
        rows.append(
            {"passage": {**record, **({"metadata": to_plain(passage.metadata)} if passage.metadata else {})}}
        )
    try:
        write_jsonl(path, rows)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"a text of the set holds half a character (a lone surrogate, {error.object[error.start]!a}); "
            "write the whole character"
        ) from error
    return path
