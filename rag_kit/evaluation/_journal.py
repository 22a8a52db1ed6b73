"""A log of one job: what was appended before a kill is not computed again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rag_kit.documents.append_log import AppendLog, read_log
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import check_target


class Journal:
    """Records of one job, one line each, below a first line that says which job it is.

    Its methods block: call them outside of an event loop. They may be called from several threads.

    Args:
        path: The file; made where it is not there.
        job: What decides the records, as plain JSON. A file of another job is refused.

    Raises:
        InvalidInputError: If the file is of another job, or is no such file.
        ResultsLockedError: If another process, or another job of this one, writes to it.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        check_target(path)
        self.records: list[dict[str, Any]] = []
        self._log = AppendLog(path)
        try:
            if not self._read(path, dict(job)):
                self._log.append([{"job": dict(job)}])
        except BaseException:
            self._log.close()
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; a killed process loses none that was appended."""
        self._log.append([record])

    def close(self) -> None:
        """Bring everything to the disk and let go of the file."""
        self._log.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, path: Path, job: dict[str, Any]) -> bool:
        """Take the records of the file; whether its first line says the job."""
        lines = list(read_log(path))
        half = bool(lines) and lines[-1][1] is None and not path.read_bytes().endswith(b"\n")
        if half and (len(lines) > 1 or path.read_bytes().startswith(b'{"job"')):
            lines.pop()  # the last line was cut off; it is written again
        for place, (number, record) in enumerate(lines):
            if record is None or (place == 0 and set(record) != {"job"}):
                raise InvalidInputError(
                    f"{path.name}:{number} is no line of such a file; name another file, or remove this one"
                )
            if place:
                self.records.append(record)
            elif record["job"] != job:
                raise InvalidInputError(f"{path.name} is of another job: {_different(record['job'], job)}")
        return bool(lines)


def _different(was: Any, now: Mapping[str, Any]) -> str:
    before = was if isinstance(was, Mapping) else {}
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    shown = "; ".join(
        f"{name} was {before.get(name)!r:.60} and is {now.get(name)!r:.60}" for name in names[:3]
    )
    return f"{shown}; name another file to begin anew"
