"""How files are split, as recorded in an index and beside each file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_kit.indexing.splitting.packing import check_sizes

if TYPE_CHECKING:
    from rag_kit.indexing.document_index import DocumentIndex

#: Goes up when readers or splitter give other chunks than before; then files are read again.
READING = 1
_DEFAULTS = {"chunk_size": 1000, "chunk_overlap": 100}


@dataclass(frozen=True)
class SplitSettings:
    """Settings of one ingest.

    Attributes:
        chunk_size: Most characters of a chunk.
        chunk_overlap: Characters repeated between chunks.
        notes: What to tell about a change of settings.
    """

    chunk_size: int
    chunk_overlap: int
    notes: list[str] = field(default_factory=list)

    @property
    def values(self) -> dict[str, int]:
        """What is recorded in the index."""
        return {"chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}

    @property
    def key(self) -> str:
        """What is recorded beside a file: with another value, it is read again."""
        return json.dumps({**self.values, "reading": READING}, sort_keys=True)

    def record(self, index: DocumentIndex) -> None:
        """Write the settings into the index if they are not there."""
        if index.settings != self.values:
            index.record_settings(self.values)


def settings_for(
    index: DocumentIndex, *, is_new: bool, chunk_size: int | None, chunk_overlap: int | None
) -> SplitSettings:
    """The settings given, else those recorded, else the defaults.

    Raises:
        InvalidInputError: A size is not allowed.
    """
    recorded = index.settings
    given = {"chunk_size": chunk_size, "chunk_overlap": chunk_overlap}
    values = {
        name: value if value is not None else recorded.get(name, default)
        for (name, default), value in zip(_DEFAULTS.items(), given.values(), strict=True)
    }
    check_sizes(values["chunk_size"], values["chunk_overlap"])
    changed = [
        f"{name} changed from {recorded[name]} to {value}"
        for name, value in values.items()
        if name in recorded and recorded[name] != value
    ]
    notes = [f"{' and '.join(changed)}: all given files are split again"] if changed and not is_new else []
    return SplitSettings(values["chunk_size"], values["chunk_overlap"], notes)
