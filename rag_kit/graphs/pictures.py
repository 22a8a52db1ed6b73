"""Pictures of the passages that an answer is written from, for models that see."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.folder import is_picture

_MAX_PICTURES = 8  # in a prompt


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
    """Return the picture files that passages name, each with a tag that holds the number of its passage.

    Notes name the pictures that are left out: those that are not in the folder, and those beyond `_MAX_PICTURES`.
    """
    pictures: list[tuple[str, Path]] = []
    missing: set[str] = set()
    for number, document in enumerate(documents, 1):
        name = document.metadata.get("picture")
        if not is_picture(name):
            continue
        path = folder / str(name)
        if path.is_file() and not path.is_symlink() and not path.parent.is_symlink():  # links may lead out
            pictures.append((f'<picture passage="{number}"/>', path))
        else:
            missing.add(str(name))
    if missing:
        names = ", ".join(sorted(missing))
        write_note(f"answer: without the pictures {names}, which are not in {folder.name}")
    if (left_out := len(pictures) - _MAX_PICTURES) > 0:
        write_note(f"answer: {left_out} of {len(pictures)} pictures were left out of the prompt")
    return pictures[:_MAX_PICTURES]
