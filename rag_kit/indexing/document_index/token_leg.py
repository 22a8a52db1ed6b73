"""The tokens leg: the vectors of each passage's tokens, which late interaction reranks by (see ``LateInteraction``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import IndexFormatError, InvalidInputError
from rag_kit.indexing.document_index import vectors
from rag_kit.indexing.document_index.file_leg import ROWS_PER_CHANGE, FileLeg
from rag_kit.indexing.document_index.folder import repair_advice
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.state import (
    NO_GENERATION,
    Connection,
    IndexReport,
    IndexState,
    select_in,
)
from rag_kit.indexing.document_index.store import Access
from rag_kit.indexing.document_index.vector_leg import read_changed_numbers, read_numbers
from rag_kit.indexing.document_index.vectors import Numbers, VectorSegment
from rag_kit.indexing.document_index.views import PostingsView
from rag_kit.indexing.searched import REPRESENTATION
from rag_kit.models.late_interaction import LateInteraction, TokenVectors
from rag_kit.models.wheels.files import is_installed
from rag_kit.models.wheels.models import WheelLateInteraction

logger = logging.getLogger(__name__)
_MODEL = "colbert-small"
_BITS = 16  # a token's number in the file: that of its chunk, and in so many bits its place in the text
_GROUP = 64  # texts given to the model at a time
# new texts after which a file is written: so many, or one for so many that are stored
_MIN_STEP, _STEP_SHARE = 1000, 4
# texts made of others are not returned, so nothing compares their tokens
_PASSAGES = f"FROM chunks WHERE instr(metadata, '\"{REPRESENTATION}\"') = 0"


def token_model(access: Access, recorded: str | None) -> LateInteraction | None:
    """Return the model that is given, else the default one: for a new leg, or if it is recorded and installed."""
    is_new = recorded is None and "tokens" in (access.legs or ())
    if access.token_model is None and (is_new or (recorded == _MODEL and is_installed(_MODEL))):
        return WheelLateInteraction(_MODEL)
    return access.token_model


class TokenLeg(FileLeg):
    """The token vectors of an index, rounded to 8 bits; see ``Leg``. What its file lacks, reranking computes.

    While many texts are new, the file is written several times, each time with more of them: what a kill leaves, the
    next writer takes over.
    """

    label = kind = "tokens"
    tables = ("chunks", "removed")
    made_by = "token_model"

    def __init__(self, folder: Path, model: LateInteraction | None, recorded: str | None) -> None:
        self._model = model
        self.waits_for = "" if model is not None else f"the model {recorded!r} (token_model=...)"
        super().__init__(folder)

    def _forget(self) -> None:
        self._opened = (NO_GENERATION, 0, 0), vectors.segment_in_memory([], 0)

    def view(self, connection: Connection, state: IndexState) -> PostingsView:
        """Raise InvalidInputError, for tokens are compared with those of a question, not searched."""
        raise InvalidInputError("The tokens leg is for index_retriever(index, reranker='colbert-small').")

    def tokens_of(
        self, connection: Connection, state: IndexState, texts: Sequence[str], model: str
    ) -> dict[str, TokenVectors]:
        """Return the unit vectors of the tokens of texts by a model; texts that are not stored are left out."""
        if state.token_model != model:
            return {}
        generation, file = self._newest(state)
        text_of = {text_hash(text.encode("utf-8", "replace").decode()): text for text in texts}
        query = f"SELECT hash, n {_PASSAGES} AND generation <= {generation} AND hash IN ({{}})"
        found = {text_of[key]: _rows_of(file, n) for key, n in select_in(connection, query, text_of)}
        return {text: vectors.unit(rows.astype(np.float32)) for text, rows in found.items() if len(rows)}

    def _newest(self, state: IndexState) -> tuple[int, VectorSegment]:
        """Return generation and content of the newest file; no rows for no file, or a damaged one, which is logged."""
        with self._lock:
            for generation, path in self.readable(state):
                try:
                    status = path.stat()  # the file may grow under one name
                    stamp = generation, status.st_mtime_ns, status.st_size
                    if self._opened[0] != stamp:
                        self._opened = stamp, vectors.segment_in_memory([], 0)  # if it cannot be opened
                        self._opened = stamp, vectors.open_file(path)
                except FileNotFoundError:
                    continue  # a writer has just put a newer one in its place
                except (IndexFormatError, OSError) as error:
                    logger.warning("%s Tokens are computed instead. %s", error, repair_advice(self._folder))
                return generation, self._opened[1]
            return NO_GENERATION, vectors.segment_in_memory([], 0)

    def _stored_and_lacking(self, connection: Connection, state: IndexState) -> tuple[Numbers, Numbers]:
        """Return the numbers of the passages whose vectors the newest file has, and of the others, rising."""
        generation, file = self._newest(state)
        passages = read_numbers(connection, f"SELECT n {_PASSAGES} AND generation > ?", NO_GENERATION)
        changed = read_changed_numbers(connection, generation, "chunks")
        stored = np.setdiff1d(np.intersect1d(passages, file.numbers >> _BITS), changed)
        return stored, np.setdiff1d(passages, stored)

    def _is_recent(self, connection: Connection, state: IndexState) -> bool:
        stored, lacking = self._stored_and_lacking(connection, state)
        return super()._is_recent(connection, state) and len(lacking) * ROWS_PER_CHANGE <= len(stored)

    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        stored, lacking = self._stored_and_lacking(connection, state)
        while True:
            size = max(_MIN_STEP, len(stored) // _STEP_SHARE)
            new, lacking = lacking[:size], lacking[size:]
            stored = np.union1d(stored, new)
            blocks = self._blocks(connection, self._newest(state)[1], stored, {*new.tolist()})
            first = next(blocks, (new, np.empty((0, 0), np.int8)))
            vectors.write_file(path, chain([first], blocks), first[1].shape[1], "i1")
            if not len(lacking):
                return

    def _blocks(
        self, connection: Connection, file: VectorSegment, numbers: Numbers, new: set[int]
    ) -> Iterator[tuple[Numbers, Any]]:
        """Yield the tokens of passages, in order: those of new ones by the model, the others out of the file."""
        assert self._model is not None
        for start in range(0, len(numbers), _GROUP):
            group = numbers[start : start + _GROUP].tolist()
            query = "SELECT n, text FROM chunks WHERE n IN ({})"
            text_of = dict(select_in(connection, query, [n for n in group if n in new]))
            made = self._model.tokens_by_text([*text_of.values()])
            for n in group:
                rows = _rounded(made[text_of[n]]) if n in text_of else _rows_of(file, n)
                rows = rows[: 1 << _BITS]
                yield (n << _BITS) + np.arange(len(rows)), rows

    def rebuild(self, connection: Connection, state: IndexState) -> str:
        """Build the file anew if it is damaged; a sound one stays, for the model is slow."""
        self.verify(connection, state, report := IndexReport())
        return super().rebuild(connection, state) if report.problems else ""

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Report a lost or damaged file; texts that it lacks are a note."""
        self.check_saved(connection, state, report)
        try:
            for _, path in self.readable(state)[:1]:
                if not (file := vectors.open_file(path)).is_sound():
                    report.problems.append(f"tokens: {path.name} is not what was written")
                report.checked["token rows"] = len(np.unique(file.numbers >> _BITS))
        except FileNotFoundError:
            return  # a writer has just put one of a later state in its place
        except (IndexFormatError, OSError) as error:
            report.problems.append(f"tokens: {error}")


def _rows_of(file: VectorSegment, n: int) -> Any:
    """Return the vectors of the tokens of the chunk with a number; none if it is not in the file."""
    start, end = np.searchsorted(file.numbers, [n << _BITS, (n + 1) << _BITS])
    return file.rows[start:end]


def _rounded(tokens: TokenVectors) -> Any:
    """Return vectors as whole numbers from -127 to 127, each scaled by its largest; their lengths are forgotten."""
    largest = np.abs(tokens).max(axis=1, keepdims=True, initial=1e-12)
    return np.rint(tokens * (127 / largest)).astype(np.int8)
