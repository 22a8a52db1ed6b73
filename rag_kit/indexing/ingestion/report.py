"""Report of an ingest, and its progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rag_kit.indexing.files import SourceFile

if TYPE_CHECKING:
    from rag_kit.indexing.representing.representer import Represented

_MAX_NAMES = 20  # files in one note
#: Names in JSON for the parts of the tuples in some fields of a report.
_PART_NAMES = {
    "failed": ("file", "reason"),
    "duplicates": ("file", "original"),
    "remarks": ("file", "remark"),
    "lost": ("file", "text", "corrected"),
    "changes": ("file", "change"),
}


@dataclass
class IngestReport:
    """Report of an ingest; numbers are of files unless said otherwise.

    Example:
        >>> print(IngestReport(added=2, unchanged=1, chunks=9, seconds=0.5).summary())
        2 files added, 0 updated, 1 unchanged, 0 removed, 0 not read; 9 chunks in the index (0.5 s)
    """

    added: int = 0
    updated: int = 0  # files that had changed, or were split anew
    unchanged: int = 0
    removed: int = 0  # files that vanished
    duplicates: list[tuple[str, str]] = field(default_factory=list)  # file, and the one it is a copy of
    remarks: list[tuple[str, str]] = field(default_factory=list)  # file, and what was left out or guessed
    # corrections by hand that fit nowhere in their file now, and are kept: file, text once read, correction
    lost: list[tuple[str, str, str | None]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)  # file, reason; an earlier version stays
    chunks: int = 0  # in the index now
    embedded: int = 0  # texts that went through the embedding model
    embedding: str = "none"  # the index's embedding model; "none" where it is searched by keyword only
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)  # remarks for people
    represented: dict[str, int] = field(default_factory=dict)  # representation -> texts of written files
    calls: int = 0  # of the model for these
    tokens: int = 0  # about how many the calls sent
    reused: int = 0  # replies that the model had given in an earlier run
    dry_run: bool = False  # whether nothing was written, and the numbers say what would be
    changes: list[tuple[str, str]] = field(default_factory=list)  # file, and "added", "updated" or "removed"

    def count(self, file: str, change: str) -> None:
        """Count a file as ``"added"``, ``"updated"`` or ``"removed"``."""
        setattr(self, change, getattr(self, change) + 1)  # the field that counts it has the same name
        self.changes.append((file, change))

    def count_copy(self, source: str, original: str, files: Mapping[str, SourceFile]) -> None:
        """Add a copy of a file to the duplicates, by the files' names; ``files`` has those of this ingest by source."""
        name = files[original].file if original in files else original
        self.duplicates.append((files[source].file, name))

    def count_representations(self, represented: Represented) -> None:
        """Add the numbers and the cost of representations."""
        self.calls += represented.calls
        self.tokens += represented.tokens
        self.reused += represented.reused
        for kind, count in represented.made.items():
            self.represented[kind] = self.represented.get(kind, 0) + count

    def remark_lines(self) -> list[str]:
        """Write the remarks for people: each once, with its files.

        Example:
            >>> remarks = [("a.txt", "encoding guessed: cp1251"), ("b.txt", "encoding guessed: cp1251")]
            >>> IngestReport(remarks=remarks).remark_lines()
            ['a.txt, b.txt: encoding guessed: cp1251']
        """
        files: dict[str, list[str]] = {}
        for file, remark in self.remarks:
            files.setdefault(remark, []).append(file)
        return [f"{first_names(names)}: {remark}" for remark, names in files.items()]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON data, with objects in place of the tuples: ``{"file": "a.txt", "reason": ...}``."""
        return asdict(self) | {
            name: [dict(zip(part_names, row, strict=True)) for row in getattr(self, name)]
            for name, part_names in _PART_NAMES.items()
        }

    def summary(self) -> str:
        """Return one line for people, and a second one about representations, if any were made."""
        copies = f", {len(self.duplicates)} left out as copies" if self.duplicates else ""
        line = (
            f"{'dry run: ' if self.dry_run else ''}{self.added} file{'' if self.added == 1 else 's'} added, "
            f"{self.updated} updated, {self.unchanged} unchanged, {self.removed} removed, {len(self.failed)} not read"
            f"{copies}; {self.chunks} chunks in the index ({self.seconds:.1f} s)"
        )
        parts = [f"{count} {kind}" for kind, count in self.represented.items()]
        if self.calls or self.reused:
            parts += [f"{self.calls} model calls, about {self.tokens} tokens, {self.reused} replies reused"]
        return f"{line}\nrepresentations: {', '.join(parts)}" if parts else line


def first_names(files: list[str]) -> str:
    """Name the first files, and say how many more there are."""
    more = f" and {len(files) - _MAX_NAMES} more files" if len(files) > _MAX_NAMES else ""
    return ", ".join(files[:_MAX_NAMES]) + more


class Progress:
    """Counts the files that are done, and calls ``call(name, done, total, bytes=n)``, one thread at a time."""

    def __init__(self, call: Callable[..., object] | None, total: int) -> None:
        self._call = call
        self._total = total
        self._done = self._bytes = 0
        self._lock = threading.Lock()

    def tell(self, name: str) -> None:
        """Call with the name of the file that is worked on now."""
        with self._lock:
            if self._call is not None:
                self._call(name, self._done, self._total, bytes=self._bytes)

    def calls(self, done: int, total: int) -> None:
        """Say how many calls of the model are done."""
        self.tell(f"{done} of {total} calls of the model")

    def count(self, size: int = 0) -> None:
        """Count one more file as done."""
        with self._lock:
            self._done += 1
            self._bytes += size
