"""How files are split, as recorded in an index and beside each file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.ocr import ocr_languages
from rag_kit.indexing.splitting.api import chosen_splitter
from rag_kit.indexing.splitting.named import SPLITTERS
from rag_kit.indexing.splitting.packing import check_sizes

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.index import DocumentIndex
    from rag_kit.indexing.splitting.api import Splitter
    from rag_kit.indexing.splitting.named import Tokenizer

#: Goes up when readers or splitter give other chunks than before; then files are read again.
READING = 5
_DEFAULTS: dict[str, Any] = {
    "chunk_size": 1000,
    "chunk_overlap": 100,
    "splitter": "structure",
    "keep_duplicates": None,
    "ocr": "",
}


@dataclass(frozen=True)
class SplitSettings:
    """Settings of one ingest.

    Attributes:
        chunk_size: Most characters of a chunk.
        chunk_overlap: Characters repeated between chunks.
        splitter: What cuts; ``None`` for the splitter by structure.
        name: What it is called, with its tokenizer.
        keep_duplicates: Whether copies of other files go in, too; ``None`` for those in other folders only.
        represent: What is recorded of representations; empty where there are none and never were.
        ocr: Languages of text that is recognised in pictures; empty for none.
        notes: What to tell about a change of settings.
    """

    chunk_size: int
    chunk_overlap: int
    splitter: Splitter | None = None
    name: str = "structure"
    keep_duplicates: bool | None = None
    represent: Mapping[str, Any] = field(default_factory=dict)
    ocr: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def values(self) -> dict[str, Any]:
        """What is recorded in the index: sizes always, the rest where it is not the default."""
        values = {name: getattr(self, name) for name in ("chunk_size", "chunk_overlap")}
        other = {"splitter": self.name, "ocr": self.ocr, "keep_duplicates": self.keep_duplicates}
        values |= {name: value for name, value in other.items() if value != _DEFAULTS[name]}
        return {**values, **self.represent}

    @property
    def key(self) -> str:
        """What is recorded beside a file: with another value, it is read again."""
        return json.dumps({**self.values, "reading": READING}, sort_keys=True)

    def record(self, index: DocumentIndex) -> None:
        """Write the settings into the index if they are not there."""
        if index.settings != self.values:
            index.record_settings(self.values)


def settings_for(
    index: DocumentIndex,
    *,
    chunk_size: int | None,
    chunk_overlap: int | None,
    splitter: Splitter | str | None = None,
    tokenizer: Tokenizer | None = None,
    keep_duplicates: bool | None = None,
    represent: Mapping[str, Any] = MappingProxyType({}),
    ocr: str | None = None,
) -> SplitSettings:
    """The settings given, else those recorded, else the defaults.

    Raises:
        InvalidInputError: A size is not allowed, or the recorded splitter is an object that must be given again.
        ConfigurationError: The splitter needs what is not there.
    """
    recorded = index.settings
    before = _DEFAULTS | dict(recorded)
    if splitter is None:
        splitter, _, counted = str(before["splitter"]).partition(" by ")
        known = not counted or counted.endswith(".json") or tokenizer is not None
        if splitter not in SPLITTERS or not known:
            raise InvalidInputError(
                f"The files of the index in {index.folder} were split by {before['splitter']}, which is not known by "
                "name: give splitter= (and tokenizer=) again, or others, by which all given files are split again."
            )
        tokenizer = tokenizer if tokenizer is not None else counted or None
    given = {
        "chunk_size": chunk_size,
        "chunk_overlap": chunk_overlap,
        "keep_duplicates": keep_duplicates,
        "ocr": ocr,
    }
    values: dict[str, Any] = {name: before[name] if value is None else value for name, value in given.items()}
    sizes = {name: values[name] for name in ("chunk_size", "chunk_overlap")}
    check_sizes(**sizes)
    values["ocr"] = ocr_languages(values["ocr"]) if values["ocr"] else ""
    cut = chosen_splitter(splitter, **sizes, embeddings=index.embeddings, tokenizer=tokenizer)
    name = f"{_name_of(splitter)} by {_name_of(tokenizer)}" if tokenizer is not None else _name_of(splitter)
    now = {**values, "splitter": name}
    changed = [
        f"{key} changed from {before[key]!r} to {now[key]!r}" for key in _DEFAULTS if before[key] != now[key]
    ]
    if "represent" in recorded and any(recorded.get(key) != value for key, value in represent.items()):
        changed.append("what represents chunks (kinds, model or prompts) changed")
    tell = changed and "chunk_size" in recorded
    notes = [f"{' and '.join(changed)}: all given files are split again"] if tell else []
    return SplitSettings(**values, splitter=cut, name=name, represent=represent, notes=notes)


def _name_of(thing: Any) -> str:
    """What a splitter or tokenizer is recorded as; a splitter of LangChain's with its sizes."""
    if isinstance(thing, str | PathLike):
        return str(thing)
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    sizes = [getattr(thing, f"_chunk_{what}", None) for what in ("size", "overlap")]
    return f"{name}({sizes[0]}, {sizes[1]})" if None not in sizes else str(name)
