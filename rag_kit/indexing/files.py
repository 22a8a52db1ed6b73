"""Which files lie under some paths: in a fixed order, never outside of their folder, never a pipe or device."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rag_kit.errors import InvalidInputError

_MAX_DEPTH = 100
_ESCAPE = re.compile(r"\\x[0-9a-f]{2}")
_IGNORED = frozenset({"__pycache__", "node_modules", "__MACOSX", "Thumbs.db", "desktop.ini"})


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file to read: ``path`` as found, ``root`` the folder it belongs to, ``file`` its name inside (posix)."""

    path: Path
    root: Path
    file: str


@dataclass(frozen=True, order=True)
class FileProblem:
    """Something that was not taken, and why; ``file`` is its name as valid text."""

    path: Path
    file: str
    reason: str


class FileListing(NamedTuple):
    """What `iter_files` found; unpacks to the two lists."""

    files: list[SourceFile]
    problems: list[FileProblem]


def iter_files(
    paths: Iterable[str | Path],
    *,
    exclude: Sequence[str | Path] = (),
    suffixes: Iterable[str] | None = None,
    hidden: bool = False,
    max_files: int = 200_000,
) -> FileListing:
    """List the files under paths, folders searched to their depths.

    Hidden files and folders (among them those of version control) and folders of programs' leavings
    (``__pycache__``, ``node_modules``) are passed over in silence. A symbolic link counts only if it leads to a
    place inside the same folder that is not listed already; one that leaves the folder, goes in a circle or
    leads nowhere is a problem, and so are pipes, sockets, devices and what may not be read. Nothing is opened.

    Args:
        paths: Files and folders. A file's root is the folder it lies in, unless a folder that was named too holds it.
        exclude: Files and folders to pass over, such as the index's own.
        suffixes: Take only these (``[".pdf", ".md"]``); default: all, so that `read` can say what it does not know.
        hidden: Take hidden files and folders too.
        max_files: Most files; a listing that would be longer is refused.

    Returns:
        The files, sorted by root and name whatever the order of the disk, and the problems.

    Raises:
        InvalidInputError: A path does not exist, or there are more than ``max_files`` files.

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
    given = [Path(os.path.abspath(path)) for path in paths]
    missing = [str(path) for path in given if not os.path.lexists(path)]
    if missing:
        raise InvalidInputError(f"No such file or folder: {missing[0]!r}. Check the path.")
    wanted = None if suffixes is None else {suffix.lower() for suffix in suffixes}
    search = _Search({_real(path) for path in exclude}, wanted, hidden, max_files)
    for folder in sorted(path for path in given if path.is_dir()):
        search.folder(folder, folder)
        search.links(folder)
    for path in sorted(path for path in given if not path.is_dir()):
        search.named(path)
    search.files.sort(key=lambda source: (os.fsencode(source.root), os.fsencode(source.file)))
    search.problems.sort()
    return FileListing(search.files, search.problems)


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


def _real(path: str | Path) -> str:
    return os.path.realpath(path)


class _Search:
    def __init__(self, exclude: set[str], suffixes: set[str] | None, hidden: bool, max_files: int) -> None:
        self.files: list[SourceFile] = []
        self.problems: list[FileProblem] = []
        self._exclude = exclude
        self._suffixes = suffixes
        self._hidden = hidden
        self._max_files = max_files
        self._folders: set[tuple[int, int]] = set()  # device and inode, against circles
        self._taken: set[str] = set()  # real paths of the files
        self._links: list[Path] = []

    def folder(self, folder: Path, root: Path) -> None:
        """All that lies in a folder; links are put aside until the real files are known."""
        pending = [(folder, 0)]
        while pending:
            here, depth = pending.pop()
            try:
                status = os.stat(here)
                if not self._new(status) or _real(here) in self._exclude:
                    continue
                with os.scandir(here) as scan:
                    entries = sorted(scan, key=lambda entry: os.fsencode(entry.name), reverse=True)
            except OSError as error:
                self._problem(here, root, f"the folder cannot be read ({error.strerror or error})")
                continue
            for entry in entries:
                if self._passed_over(entry.name):
                    continue
                path = Path(entry.path)
                if entry.is_symlink():
                    self._links.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    if depth >= _MAX_DEPTH:
                        self._problem(path, root, f"folders are nested more than {_MAX_DEPTH} deep")
                    else:
                        pending.append((path, depth + 1))
                else:
                    self._take(path, root)

    def links(self, root: Path) -> None:
        """The links met under a root; a folder behind a link may bring more of them."""
        steps = 0
        while self._links and steps < self._max_files:
            steps += 1
            batch, self._links = sorted(self._links), []
            for link in batch:
                self._link(link, root)

    def _link(self, link: Path, root: Path) -> None:
        try:
            target = Path(os.path.realpath(link, strict=True))
            status = os.stat(target)
        except OSError as error:
            circle = "Too many levels" in str(error)
            self._problem(link, root, "the link goes in a circle" if circle else "the link leads nowhere")
            return
        if not target.is_relative_to(_real(root)):
            self._problem(link, root, "the link leaves the folder; copy the file into it to have it read")
        elif str(target) in self._exclude:
            return
        elif stat.S_ISDIR(status.st_mode):
            self.folder(link, root)
        else:
            self._take(link, root)

    def named(self, path: Path) -> None:
        """A file that was named itself, link or not, hidden or not."""
        root = path.parent
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            self._problem(path, root, f"it cannot be resolved ({error.strerror or error})")
            return
        if path.is_symlink() and not Path(real).is_relative_to(_real(root)):
            self._problem(path, root, "the link leaves the folder; name the file itself to have it read")
        elif real not in self._exclude:
            self._take(path, root)

    def _take(self, path: Path, root: Path) -> None:
        if self._suffixes is not None and path.suffix.lower() not in self._suffixes:
            return
        real = _real(path)
        if real in self._exclude or real in self._taken:
            return
        try:
            status = os.stat(path)
        except OSError as error:
            self._problem(path, root, f"it cannot be looked at ({error.strerror or error})")
            return
        if not stat.S_ISREG(status.st_mode):
            self._problem(path, root, "it is no regular file but a pipe, socket or device")
        elif not os.access(path, os.R_OK):
            self._problem(path, root, "reading it is not permitted")
        else:
            if len(self.files) >= self._max_files:
                raise InvalidInputError(
                    f"There are more than max_files={self._max_files} files under {root}. Name fewer, or raise it."
                )
            self._taken.add(real)
            self.files.append(SourceFile(path, root, path.relative_to(root).as_posix()))

    def _passed_over(self, name: str) -> bool:
        return name in _IGNORED or (not self._hidden and name.startswith("."))

    def _new(self, status: os.stat_result) -> bool:
        key = (status.st_dev, status.st_ino)
        if key in self._folders:
            return False
        self._folders.add(key)
        return True

    def _problem(self, path: Path, root: Path, reason: str) -> None:
        name = path.relative_to(root).as_posix() if path != root else path.name
        self.problems.append(FileProblem(path, printable_path(name), reason))
