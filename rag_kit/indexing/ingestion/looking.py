"""Which files have changed since they were read."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from rag_kit.indexing.document_index.writing import SourceRecord

# A file that was written this shortly before it was looked at may be written again within one tick of the
# clock of its file system, and keep its time; so its bytes are compared.
_TICK_NS = 2_000_000_000


@dataclass(frozen=True)
class Sight:
    """A file as it was seen."""

    size: int
    mtime_ns: int
    inode: int
    seen_ns: int

    def same_as(self, other: Sight) -> bool:
        """Whether nothing was written between the two."""
        return (self.size, self.mtime_ns, self.inode) == (other.size, other.mtime_ns, other.inode)

    def same_as_record(self, record: SourceRecord) -> bool:
        """Whether size and time say that the file is the one that was read."""
        return (
            self.size == record.size
            and self.mtime_ns == record.mtime_ns
            and record.mtime_ns + _TICK_NS < record.checked_ns
        )


def look(path: Path) -> Sight:
    """See a file.

    Raises:
        OSError: It is gone or not accessible.
    """
    seen = time.time_ns()
    stat = os.stat(path)
    return Sight(stat.st_size, stat.st_mtime_ns, stat.st_ino, seen)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
