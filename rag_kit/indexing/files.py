"""Which files lie under some paths: in a fixed order, never outside of their folder, never a pipe or device."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rag_kit.errors import InvalidInputError

_MAX_FILES = 200_000
_ESCAPED_BYTE = re.compile(r"\\x[0-9a-f]{2}")  # as `printable_path` writes a byte that is no UTF-8
_IGNORED_NAMES = frozenset({"__pycache__", "node_modules", "__MACOSX", "Thumbs.db", "desktop.ini"})


def as_path(value: Any, argument: str) -> Path:
    """Return a user's path; raise InvalidInputError if it is empty (`Path` makes it "."), or no file can have it."""
    try:
        if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in str(value):
            raise ValueError
        Path(value).is_file()  # called because it raises OSError for a name that is too long
        os.fsencode(value)  # raises UnicodeEncodeError, a ValueError
    except (OSError, ValueError):
        raise InvalidInputError(f"{argument} is {value!a:.80}; give a path that a file can have") from None
    return Path(value)


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: ``path`` as found, ``root`` the folder it belongs to, ``file`` its name inside (posix)."""

    path: Path
    root: Path
    file: str


class FileProblem(NamedTuple):
    """A file that was left out, and why; ``file`` is its name as valid text."""

    path: Path
    file: str
    reason: str


def iter_files(
    paths: Iterable[str | Path], *, exclude: Sequence[str | Path] = ()
) -> tuple[list[SourceFile], list[FileProblem]]:
    """List the files under paths, in folders of any depth, sorted by root and name; and those left out.

    Hidden files and folders, leavings of programs (``__pycache__``, ``node_modules``, ``~$letter.docx``) and the paths
    in `exclude` are passed over in silence. A symbolic link counts only if it leads to a file inside the same folder
    that is not listed already; one that leaves the folder, goes in a circle or leads nowhere is a problem, and so are
    pipes, sockets, devices and unreadable files. No file is opened. The root of a file is the given folder that it was
    found in; of a file that was given itself, the folder it lies in.
    """
    given_paths = [paths] if isinstance(paths, str | Path) else paths
    starts = sorted(Path(os.path.abspath(path)) for path in given_paths)  # folders and files
    if missing := [str(path) for path in starts if not os.path.lexists(path)]:
        raise InvalidInputError(f"No such file or folder: {missing[0]!r}. Check the path.")
    excluded = {os.path.realpath(path) for path in exclude}  # and later the files that are listed already
    files: list[SourceFile] = []
    problems: list[FileProblem] = []
    links: list[tuple[Path, Path]] = []  # with their roots
    for root in filter(Path.is_dir, starts):
        for path in _walk(root, excluded, problems):
            if path.is_symlink():
                links.append((path, root))
            else:
                _list_file(path, root, excluded, files, problems)
    # links and single files come after the folders, for what they lead to may be listed there
    single_files = [(path, path.parent) for path in starts if not path.is_dir()]
    for path, root in links + single_files:
        try:
            target = Path(os.path.realpath(path, strict=True))
        except OSError as error:
            problems.append(_problem(path, root, f"the link leads nowhere ({error.strerror})"))
            continue
        if not target.is_relative_to(os.path.realpath(root)):
            reason = "the link leaves the folder; name the file itself, or copy it, to have it read"
            problems.append(_problem(path, root, reason))
        elif not target.is_dir():
            _list_file(path, root, excluded, files, problems)
    files.sort(key=lambda source: (os.fsencode(source.root), os.fsencode(source.file)))
    return files, sorted(problems)


def printable_path(path: str) -> str:
    """Write a path as valid text, different for different paths: bytes that are no UTF-8 become ``\\xNN``.

    The backslashes of a name in which one could be taken for the beginning of such an escape are doubled.

    Example:
        >>> print(printable_path(os.fsdecode(b"caf\\xe9.txt")), printable_path("caf\\\\xe9.txt"))
        caf\\xe9.txt caf\\\\xe9.txt
    """
    data = os.fsencode(path)
    text = data.decode("utf-8", "backslashreplace")
    if b"\\" not in data or not _ESCAPED_BYTE.search(text):
        return text
    return data.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def _walk(root: Path, excluded: set[str], problems: list[FileProblem]) -> Iterator[Path]:
    """Yield the visible files and links in a folder and below it, but in no excluded folder."""

    def report(error: OSError) -> None:
        reason = f"the folder cannot be read ({error.strerror or error})"
        problems.append(_problem(Path(error.filename), root, reason))

    for folder, folders, files in os.walk(root, onerror=report):
        if os.path.realpath(folder) in excluded:
            folders.clear()
            continue
        folders[:] = filter(_is_visible, folders)  # `os.walk` goes on in this list, but in no link
        yield from filter(Path.is_symlink, (Path(folder, name) for name in folders))
        yield from (Path(folder, name) for name in files if _is_visible(name))


def _list_file(
    path: Path, root: Path, excluded: set[str], files: list[SourceFile], problems: list[FileProblem]
) -> None:
    """Add a file to ``files`` and its real path to ``excluded``, unless it is there; to ``problems`` if unreadable."""
    real_path = os.path.realpath(path)
    if real_path in excluded:
        return
    if not os.path.isfile(path):
        problems.append(_problem(path, root, "it is no regular file but a pipe, socket or device"))
    elif not os.access(path, os.R_OK):
        problems.append(_problem(path, root, "reading it is not permitted"))
    elif len(files) >= _MAX_FILES:
        raise InvalidInputError(
            f"There are more than {_MAX_FILES} files under {root}. Ingest parts of it one after the other."
        )
    else:
        excluded.add(real_path)
        files.append(SourceFile(path, root, path.relative_to(root).as_posix()))


def _problem(path: Path, root: Path, reason: str) -> FileProblem:
    name = path.relative_to(root).as_posix() if path != root else path.name
    return FileProblem(path, printable_path(name), reason)


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "~$")) and name not in _IGNORED_NAMES
