"""Reader processes that serve one test after another: each start costs a fifth of a second of processor time."""

from __future__ import annotations

from collections.abc import Callable

from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Context, Part
from rag_kit.indexing.readers.process import ReaderProcess

_FILES = 150  # below the number after which a reader replaces its process
_idle: list[ReaderProcess] = []


class LentProcess:
    """A reader process for one reader, which gives it back instead of ending it, unless it is at work."""

    def __init__(self, limits: ReadLimits) -> None:
        self.max_memory = limits.max_memory
        self._busy = False
        self._process: ReaderProcess | None = None
        while self._process is None and _idle:
            found = _idle.pop()
            if found.alive and found.max_memory == limits.max_memory and found.files < _FILES:
                self._process = found
            else:
                found.kill()
        self._process = self._process or ReaderProcess(limits)

    @property
    def files(self) -> int:
        return self._process.files if self._process else 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    def convert(
        self, path: str, format_name: str, context: Context, keep: Callable[[bytes], str] | None = None
    ) -> list[Part]:
        assert self._process is not None
        self._busy = True
        try:
            return self._process.convert(path, format_name, context, keep)
        finally:
            self._busy = False

    def stop(self) -> None:
        if self._busy and self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.alive and not self._busy:
            _idle.append(process)
        else:
            process.kill()
