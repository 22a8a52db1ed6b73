"""Convert files to chunks on workers: some files ahead of use, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ReadError
from rag_kit.indexing.cluster import worker
from rag_kit.indexing.readers.parts import Unreadable

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.cluster.work import Cluster
    from rag_kit.indexing.files import SourceFile
    from rag_kit.indexing.ingestion.listing import Sight

_WINDOW = 64  # files submitted at a time, at least
_AHEAD = 8  # and at least so many for each thread of the workers
_MOST_DEATHS = 3


@dataclass
class _Task:
    """A file that was submitted: its future, and its outcome when it is there."""

    file: SourceFile
    future: Any
    outcome: Any = None


class ClusterConverter:
    """As `Converter`, on workers: a bounded number of files is submitted ahead of the one that is asked for.

    When a worker dies, Dask blames all its tasks. What is blamed is tried again one at a time with nothing else of
    this run on the workers, so that a file that ends three of them is known, and no other is left out for it.

    Args:
        cluster: Where to convert.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._coming: Iterator[SourceFile] = iter(())
        self._waiting: deque[_Task] = deque()

    def close(self) -> None:
        """Let go of the tasks: Dask drops those whose futures are gone."""
        self._waiting.clear()

    def expect(self, files: Iterable[SourceFile]) -> None:
        """Take the files that will be asked for, in their order."""
        self._coming = iter(files)

    def convert(self, file: SourceFile) -> tuple[list[Document], Sight, str, bytes]:
        """As `Converter.convert`, of the next file that was expected."""
        window = max(_WINDOW, _AHEAD * self._cluster.threads)
        while len(self._waiting) < window and (following := next(self._coming, None)) is not None:
            self._waiting.append(_Task(following, self._cluster.submit(worker.convert, following)))
        task = self._waiting[0]
        assert task.file == file, "files are converted in the order in which they were expected"
        if not self._wait_for(task):
            self._try_alone()
        self._waiting.popleft()
        first, *rest = task.outcome
        if isinstance(first, Exception):
            raise first from rest[0]
        return task.outcome  # type: ignore[no-any-return]

    def _wait_for(self, task: _Task) -> bool:
        """Wait for the outcome of a task; ``False`` where its worker died."""
        if task.outcome is None:
            task.outcome = self._cluster.result(task.future)
        return task.outcome is not None

    def _try_alone(self) -> None:
        """Wait for all that was submitted, then convert what died with a worker one at a time."""
        died = [task for task in self._waiting if not self._wait_for(task)]
        with self._cluster.without_calls():
            for task in died:
                deaths = _deaths(task)
                while task.outcome is None:
                    task.future = self._cluster.submit(worker.convert, task.file)
                    if self._wait_for(task):
                        break
                    deaths += _deaths(task)
                    if deaths >= _MOST_DEATHS:
                        cause = Unreadable(
                            f"the worker that read it died {deaths} times",
                            "Mend its reader, or give workers more memory",
                        )
                        error = ReadError(f"{task.file.file}: {cause.reason}. {cause.advice}.")
                        task.outcome = error, cause


def _deaths(task: _Task) -> int:
    """How many workers died of a task that Dask gave up."""
    return int(task.future.exception().allowed_failures) + 1
