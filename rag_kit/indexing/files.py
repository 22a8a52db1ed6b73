"""Which files lie under some paths: in a fixed order, never outside of their folder, never a pipe or device."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rag_kit.errors import InvalidInputError

_MAX_FILES = 200_000
_ESCAPE = re.compile(r"\\x[0-9a-f]{2}")
_IGNORED = frozenset({"__pycache__", "node_modules", "__MACOSX", "Thumbs.db", "desktop.ini"})


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: ``path`` as found, ``root`` the folder it belongs to, ``file`` its name inside (posix)."""

    path: Path
    root: Path
    file: str


class FileProblem(NamedTuple):
    """Something that was not taken, and why; ``file`` is its name as valid text."""

    path: Path
    file: str
    reason: str


class FileListing(NamedTuple):
    """What `iter_files` found; unpacks to the two lists."""

    files: list[SourceFile]
    problems: list[FileProblem]


def iter_files(paths: Iterable[str | Path], *, exclude: Sequence[str | Path] = ()) -> FileListing:
    """List the files under paths, folders searched to their depths.

    Hidden files and folders (among them those of version control) and folders of programs' leavings
    (``__pycache__``, ``node_modules``) are passed over in silence. A symbolic link counts only if it leads to a
    file inside the same folder that is not listed already; one that leaves the folder, goes in a circle or
    leads nowhere is a problem, and so are pipes, sockets, devices and what may not be read. Nothing is opened.

    Args:
        paths: Files and folders. A file's root is the folder it lies in, unless a folder that was named too holds it.
        exclude: Files and folders to pass over, such as the index's own.

    Returns:
        The files, sorted by root and name whatever the order of the disk, and the problems.

    Raises:
        InvalidInputError: A path does not exist, or there are more than 200,000 files.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "b.md").write_text("b"), (folder / "a.md").write_text("a"), (folder / ".c").write_text("c")
        >>> files, problems = iter_files([folder])
        >>> [source.file for source in files], problems
        (['a.md', 'b.md'], [])
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    given = sorted(Path(os.path.abspath(path)) for path in paths)
    if missing := [str(path) for path in given if not os.path.lexists(path)]:
        raise InvalidInputError(f"No such file or folder: {missing[0]!r}. Check the path.")
    search = _Search({os.path.realpath(path) for path in exclude})
    links = [(link, root) for root in given if root.is_dir() for link in search.add_folder(root)]
    links += [(path, path.parent) for path in given if not path.is_dir()]
    for link, root in links:
        search.add_link(link, root)
    search.files.sort(key=lambda source: (os.fsencode(source.root), os.fsencode(source.file)))
    return FileListing(search.files, sorted(search.problems))


def printable_path(path: str) -> str:
    """A path as valid text, different for different paths: bytes that are no UTF-8 become ``\\xNN``.

    Where a backslash of the name could be mistaken for one of an escape, the name's own are doubled.

    Example:
        >>> print(printable_path(os.fsdecode(b"caf\\xe9.txt")), printable_path("caf\\\\xe9.txt"))
        caf\\xe9.txt caf\\\\xe9.txt
    """
    data = os.fsencode(path)
    text = data.decode("utf-8", "backslashreplace")
    if b"\\" not in data or not _ESCAPE.search(text):
        return text
    return data.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


class _Search:
    """Collects files, each once, and problems."""

    def __init__(self, exclude: set[str]) -> None:
        self.files: list[SourceFile] = []
        self.problems: list[FileProblem] = []
        self._passed = exclude  # real paths of what is excluded, or is taken already

    def add_folder(self, root: Path) -> list[Path]:
        """Take all files below a folder, and return the links, which may lead to one of them."""
        links: list[Path] = []

        def refuse(error: OSError) -> None:
            reason = f"the folder cannot be read ({error.strerror or error})"
            self._add_problem(Path(error.filename), root, reason)

        for folder, folders, files in os.walk(root, onerror=refuse):
            folders[:] = [name for name in folders if _is_shown(name)]
            if os.path.realpath(folder) in self._passed:
                folders.clear()
                continue
            for path in (Path(folder, name) for name in [*folders, *files] if _is_shown(name)):
                if path.is_symlink():
                    links.append(path)
                elif path.name not in folders:
                    self._take(path, root)
        return links

    def add_link(self, link: Path, root: Path) -> None:
        """Take the file that a link leads to, or one that was named itself."""
        try:
            target = Path(os.path.realpath(link, strict=True))
        except OSError as error:
            self._add_problem(link, root, f"the link leads nowhere ({error.strerror})")
            return
        if not target.is_relative_to(os.path.realpath(root)):
            reason = "the link leaves the folder; name the file itself, or copy it, to have it read"
            self._add_problem(link, root, reason)
        elif not target.is_dir():
            self._take(link, root)

    def _take(self, path: Path, root: Path) -> None:
        real = os.path.realpath(path)
        if real in self._passed:
            return
        if not os.path.isfile(path):
            self._add_problem(path, root, "it is no regular file but a pipe, socket or device")
        elif not os.access(path, os.R_OK):
            self._add_problem(path, root, "reading it is not permitted")
        elif len(self.files) >= _MAX_FILES:
            raise InvalidInputError(
                f"There are more than {_MAX_FILES} files under {root}. Ingest parts of it one after the other."
            )
        else:
            self._passed.add(real)
            self.files.append(SourceFile(path, root, path.relative_to(root).as_posix()))

    def _add_problem(self, path: Path, root: Path, reason: str) -> None:
        name = path.relative_to(root).as_posix() if path != root else path.name
        self.problems.append(FileProblem(path, printable_path(name), reason))


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name not in _IGNORED
