"""Which files there are below the given paths, each once, and which have changed since they were read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.writable import in_scope
from rag_kit.indexing.files import SourceFile, iter_files, printable_path


@dataclass(frozen=True)
class Listing:
    """The files to look at.

    Attributes:
        files: By identity: the absolute path, links resolved.
        problems: What was refused, with the reason.
        vanished: Sources known to the index that should be among the files, and are not.
    """

    files: dict[str, SourceFile]
    problems: list[tuple[str, str]]
    vanished: list[str]


def identity(path: Path) -> str:
    """A file's identity in the index; bytes in its name that are no UTF-8 become ``\\xNN``."""
    return printable_path(Path(os.path.realpath(path)).as_posix())


def check_paths(paths: Sequence[Path], known: Sequence[str]) -> None:
    """Refuse paths that do not exist.

    Args:
        paths: Files and folders.
        known: Sources that may have vanished; a path that is one of them, or their folder, may be missing.

    Raises:
        InvalidInputError: A path does not exist.
    """
    for path in paths:
        if not path.exists() and not any(in_scope(source, [identity(path)]) for source in known):
            raise InvalidInputError(f"{path} does not exist. Name files or folders that are there.")


def list_files(paths: Sequence[Path], folder: object, known: Sequence[str]) -> Listing:
    """List the files below some paths, as `check_paths` takes them; what is in the index's folder is passed over."""
    check_paths(paths, known)
    scopes = [identity(path) for path in paths]
    index_folder = [folder] if isinstance(folder, Path) else []
    listed, problems = iter_files([path for path in paths if path.exists()], exclude=index_folder)
    files: dict[str, SourceFile] = {}
    for file in listed:
        # names that are no UTF-8 must be text in messages and metadata; the path itself stays as it is
        files.setdefault(identity(file.path), replace(file, file=printable_path(file.file)))
    # what could not be looked at has not vanished
    unseen = [identity(problem.path) for problem in problems]
    absent = [source for source in known if source not in files and in_scope(source, scopes)]
    vanished = [source for source in absent if not in_scope(source, unseen)]
    refused = [(problem.file, problem.reason) for problem in problems]
    return Listing(dict(sorted(files.items())), refused, vanished)


class Sight(NamedTuple):
    """A file as it was seen; two are equal if nothing was written between them."""

    size: int
    mtime_ns: int
    inode: int


def look(path: Path) -> Sight:
    """See a file.

    Raises:
        OSError: It is gone or not accessible.
    """
    stat = os.stat(path)
    return Sight(stat.st_size, stat.st_mtime_ns, stat.st_ino)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
