"""Legs that keep what they derive from the store in one file, named for its generation and replaced whole."""

from __future__ import annotations

import hashlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from rag_kit.errors import DocumentIndexError, IndexFormatError, IndexMissingError
from rag_kit.indexing.document_index.folder import remove_parts, repair_advice
from rag_kit.indexing.document_index.state import NO_GENERATION, Connection, IndexReport, IndexState

T = TypeVar("T")
logger = logging.getLogger(__name__)
ROWS_PER_CHANGE = 100  # a file is left as it is while at most one row in so many has changed since


class FileLeg(ABC):
    """Part of an index in a folder, kept in a file (see ``Leg``); readers take newer changes out of the store."""

    label: ClassVar[str]
    kind: ClassVar[str]  # how the names of its files begin
    tables: ClassVar[tuple[str, str]]  # whose generations say what changed, and what was removed
    made_by: ClassVar[str] = ""  # field of the state that names the model or encoder, if there is one
    #: What was not given to this process; until a writer has it, the leg stays as it was saved.
    waits_for: str = ""

    def _is_empty(self, state: IndexState) -> bool:
        """Tell whether an index has nothing for the leg to derive."""
        return self.tables[0] == "vectors" and state.embedding is None

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.renew()

    def renew(self) -> None:
        """Forget what is loaded, and make a new lock: after a fork, a thread of the parent may hold the old one."""
        self._lock = threading.RLock()
        self._forget()

    def _prefix(self, state: IndexState) -> str:
        """Return the beginning of its files' names, which files of another index or model do not share."""
        model = str(getattr(state, self.made_by)) if self.made_by else ""
        model_hash = f"{hashlib.sha256(model.encode()).hexdigest()[:8]}-" if model else ""
        return f"{self.kind}-{state.uid[:8]}-{model_hash}"

    @abstractmethod
    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        """Write the file of a state, with access for its owner only."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget what is loaded."""

    def _file(self, state: IndexState, generation: int) -> Path:
        return self._folder / f"{self._prefix(state)}{generation}.index"

    def remove(self, state: IndexState) -> None:
        """Remove all files of this part of the index, and forget what is loaded."""
        with self._lock:
            for path in self._files(state):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise DocumentIndexError(f"{path} cannot be removed; remove it ({error}).") from error
            self._forget()

    def _files(self, state: IndexState) -> Iterator[Path]:
        """Return all files of the leg that this index has, by whichever model."""
        return self._folder.glob(f"{self.kind}-{state.uid[:8]}-*.index")

    def readable(self, state: IndexState) -> list[tuple[int, Path]]:
        """Return (generation, path) of this index's files, newest first; files newer than the store are left out."""
        # such a file is left if the store's log was lost in a power failure, or if an older store was put back
        prefix = self._prefix(state)
        files = []
        for path in self._folder.glob(f"{prefix}*.index"):
            generation = path.stem.removeprefix(prefix)
            if generation.isdecimal() and int(generation) <= state.generation:
                files.append((int(generation), path))
        return sorted(files, reverse=True)

    def _saved_generation(self, state: IndexState) -> int:
        """Return the newest file's generation; NO_GENERATION without a file, or if later removals are forgotten."""
        return next((saved for saved, _ in self.readable(state) if saved >= state.floor), NO_GENERATION)

    def _is_recent(self, connection: Connection, state: IndexState) -> bool:
        """Tell whether few enough rows have changed since the newest file that readers can take them from the store."""
        saved = self._saved_generation(state)
        if saved == NO_GENERATION:
            return False
        queries = [f"SELECT count(*) FROM {table} WHERE generation > ?" for table in self.tables]
        changes = sum(connection.execute(query, (saved,)).fetchone()[0] for query in queries)
        [(total,)] = connection.execute(f"SELECT count(*) FROM {self.tables[0]}").fetchall()
        return bool(changes * ROWS_PER_CHANGE <= total)

    def apply(self, connection: Connection, state: IndexState) -> int:
        """Write a file of the present generation unless few rows have changed; return the newest file's generation."""
        if self._is_empty(state):
            return state.generation
        if self.waits_for:
            if not self._is_recent(connection, state):
                logger.warning("The index in %s: %s: %s", self._folder, self.label, self.waiting)
            return self._saved_generation(state)
        with self._lock:
            if not self._is_recent(connection, state):
                self._save(connection, state, self._file(state, state.generation))
            saved = self._saved_generation(state)
        # those of older generations, of other models, of an index that was here before
        remove_parts(self._folder.glob(f"{self.kind}-*"), keep=[self._file(state, saved).name])
        return saved

    def rebuild(self, connection: Connection, state: IndexState) -> str:
        """Remove the file, build it anew and say so; return ``""`` if the index has no data for it, or it waits."""
        if self._is_empty(state) or self.waits_for:
            return ""
        with self._lock:
            self.remove(state)
            self.apply(connection, state)
        return f"rebuilt the file of {self.label}"

    @property
    def waiting(self) -> str:
        """The note that the leg waits."""
        if self.waits_for:
            return f"what was written since it was saved waits for a writer with {self.waits_for}"
        return "changes are pending, which searches read from the store, until a writer's flush() or close()"

    def check_saved(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Report a lost file as a problem, and one with many changes pending as a note."""
        if self._is_empty(state) or self._is_recent(connection, state):
            return
        made_at = state.legs_since if self.label in state.legs else 0
        was_saved = state.floor > made_at  # for the floor rises when all legs have saved a file
        # any file counts: a writer may have just replaced the file of this state by a newer one
        if was_saved and not any(self._files(state)):
            report.problems.append(
                f"{self.label}: the saved file is lost; the next writer, or repair, writes it again"
            )
        else:
            report.notes.append(f"{self.label}: {self.waiting}")


class LoadedLeg(FileLeg, Generic[T]):
    """Part of an index that loads its newest file into memory, and there adds the store's later changes."""

    takes_newer: ClassVar[bool]  # whether a newer file replaces loaded data that have followed the store

    def _forget(self) -> None:
        self._keep(None, "", NO_GENERATION)

    def _keep(self, loaded: T | None, prefix: str, generation: int) -> None:
        """Keep data in memory, with the prefix of their files' names and the generation that they are of."""
        self._loaded, self._prefix_loaded, self._generation = loaded, prefix, generation

    @abstractmethod
    def _read(self, path: Path) -> T:
        """Read the data of a file."""

    @abstractmethod
    def _empty(self, state: IndexState) -> T:
        """Make the data of an empty store."""

    @abstractmethod
    def _follow(self, loaded: T, connection: Connection, since: int, state: IndexState) -> T:
        """Add to loaded data of a generation the changes up to the state that the connection sees."""

    def _refuse(self, error: Exception) -> None:
        """Raise the error of a file that cannot be read; a subclass may log it, and go on with the store alone."""
        raise IndexFormatError(f"{error} {repair_advice(self._folder)}") from error

    def load(self, state: IndexState) -> None:
        """Load the newest saved file, unless the data in memory are as new."""
        prefix = self._prefix(state)
        with self._lock:
            # data in memory are newer than the store if an older store was put in its place
            is_in_range = state.floor <= self._generation <= state.generation
            if self._prefix_loaded != prefix or not is_in_range:
                self._forget()
            if self._loaded is not None and not self.takes_newer:
                return
            for generation, path in self.readable(state):
                # below the floor, the store no longer knows which rows were removed since
                if generation < state.floor or generation <= self._generation:
                    return
                try:
                    return self._keep(self._read(path), prefix, generation)
                except (FileNotFoundError, IndexMissingError):
                    continue  # a writer has just put a newer one in its place
                except (IndexFormatError, OSError) as error:
                    return self._refuse(error)

    def current(self, connection: Connection, state: IndexState) -> T:
        """Return the data as of the state that the connection sees: loaded ones, with the store's later changes."""
        with self._lock:
            wanted = (self._prefix(state), state.generation)
            if self._loaded is not None and (self._prefix_loaded, self._generation) == wanted:
                return self._loaded
            self.load(state)
            loaded, since = self._loaded, self._generation
            # if an error interrupts the update below, the next call begins from the file again
            LoadedLeg._forget(self)
            loaded = self._follow(self._empty(state) if loaded is None else loaded, connection, since, state)
            self._keep(loaded, *wanted)
            return loaded
