"""Pictures of the passages that an answer is written from, for models that see."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.folder import is_picture

MOST = 8  # pictures in a prompt


def check_folder(pictures: object) -> Path | None:
    """Return the folder of an index as a path, or None; InvalidInputError for anything else."""
    if pictures is None:
        return None
    if not isinstance(pictures, (str, os.PathLike)) or not Path(pictures).is_dir():
        raise InvalidInputError(
            f"pictures is {pictures!r:.80}; give the folder of the index whose passages name pictures, which "
            "`rag-kit ingest --pictures` kept."
        )
    return Path(pictures)


def pictures_of(folder: Path, documents: Sequence[Document]) -> list[tuple[str, Path]]:
    """Read the pictures that passages name, each tagged with its passage's number; notes name those left out."""
    named = [
        (number, str(document.metadata["picture"]))
        for number, document in enumerate(documents, 1)
        if is_picture(document.metadata.get("picture"))
    ]
    there = [(number, name) for number, name in named if _is_file(folder / name)]
    if lacking := sorted({name for _, name in named} - {name for _, name in there}):
        write_note(f"answer: without the pictures {', '.join(lacking)}, which are not in {folder.name}")
    if len(there) > MOST:
        write_note(f"answer: {len(there) - MOST} of {len(there)} pictures were left out of the prompt")
    return [(f'<picture passage="{number}"/>', folder / name) for number, name in there[:MOST]]


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()
