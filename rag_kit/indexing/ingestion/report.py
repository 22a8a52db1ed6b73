"""What an ingest did."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class IngestReport:
    """What an ingest did, in numbers of files unless said otherwise.

    Attributes:
        added: New files.
        updated: Files that had changed, or were split anew.
        unchanged: Files that were in the index already.
        removed: Files that vanished and were removed.
        failed: Files that could not be read, each with the reason; an earlier version of one stays.
        chunks: Chunks in the index now.
        embedded: Texts that went through the embedding model.
        embedding: Name of the index's embedding model; ``"none"`` where it is searched by keyword only.
        seconds: Time taken.
        notes: Remarks for people.
        changes: Each file that was added, updated or removed, with that word.

    Example:
        >>> print(IngestReport(added=2, unchanged=1, chunks=9, seconds=0.5).summary())
        2 files added, 0 updated, 1 unchanged, 0 removed, 0 not read; 9 chunks in the index (0.5 s)
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    chunks: int = 0
    embedded: int = 0
    embedding: str = "none"
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def count(self, file: str, what: str) -> None:
        """Count a file as ``"added"``, ``"updated"`` or ``"removed"``."""
        setattr(self, what, getattr(self, what) + 1)
        self.changes.append((file, what))

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = asdict(self)
        plain["failed"] = [{"file": file, "reason": reason} for file, reason in self.failed]
        plain["changes"] = [{"file": file, "change": what} for file, what in self.changes]
        return plain

    def summary(self) -> str:
        """One line for people."""
        return (
            f"{self.added} file{'' if self.added == 1 else 's'} added, {self.updated} updated, "
            f"{self.unchanged} unchanged, {self.removed} removed, {len(self.failed)} not read; "
            f"{self.chunks} chunks in the index ({self.seconds:.1f} s)"
        )
