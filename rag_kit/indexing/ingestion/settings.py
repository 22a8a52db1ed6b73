"""How files are split, as recorded in an index and beside each file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.ocr import ocr_languages
from rag_kit.indexing.splitting.api import choose_splitter
from rag_kit.indexing.splitting.named import SPLITTERS

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.document_index.index import DocumentIndex
    from rag_kit.indexing.splitting.api import Part, Splitter
    from rag_kit.indexing.splitting.named import Tokenizer

#: Goes up when readers or splitter give other chunks than before; then files are read again.
READING = 6
_RECORDED = ("chunk_size", "chunk_overlap", "splitter", "keep_duplicates", "ocr")


@dataclass(frozen=True)
class SplitSettings:
    """Settings of one ingest, and what its index records of them."""

    cut: Callable[[Document], Iterator[Part]]
    chunk_size: int = 1000
    chunk_overlap: int = 100
    splitter: str = "structure"  # the name of what cuts, with its tokenizer
    keep_duplicates: bool | None = None  # copies of other files; None: those in other folders only
    ocr: str = ""  # languages of text that is recognised in pictures; empty for none
    represent: Mapping[str, Any] = field(default_factory=dict)  # empty where there are none and never were
    notes: list[str] = field(default_factory=list)  # what to tell about a change of settings

    @property
    def values(self) -> dict[str, Any]:
        """What is recorded in the index: sizes always, the rest where it is not the default."""
        values = {name: getattr(self, name) for name in _RECORDED}
        sizes = ("chunk_size", "chunk_overlap")
        changed = {k: v for k, v in values.items() if k in sizes or v != getattr(SplitSettings, k)}
        return {**changed, **self.represent}

    @property
    def key(self) -> str:
        """What is recorded beside a file: with another value, it is read again."""
        return json.dumps({**self.values, "reading": READING}, sort_keys=True)


def settings_for(
    index: DocumentIndex,
    *,
    splitter: Splitter | str | None = None,
    tokenizer: Tokenizer | None = None,
    represent: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> SplitSettings:
    """The settings given, else those recorded, else the defaults; ``options`` are the others of `_RECORDED`."""
    recorded = index.settings
    settings_before = {name: recorded.get(name, getattr(SplitSettings, name)) for name in _RECORDED}
    if splitter is None:
        splitter, _, counted = str(settings_before["splitter"]).partition(" by ")
        known = not counted or counted.endswith(".json") or tokenizer is not None
        if splitter not in SPLITTERS or not known:
            raise InvalidInputError(
                f"The files of the index in {index.folder} were split by {settings_before['splitter']}, which "
                "is not known by name: give splitter= (and tokenizer=) again, or others, by which all given files are "
                "split again."
            )
        tokenizer = tokenizer if tokenizer is not None else counted or None
    values = {
        name: settings_before[name] if options.get(name) is None else options[name] for name in _RECORDED
    }
    values["ocr"] = ocr_languages(values["ocr"]) if values["ocr"] else ""
    cut = choose_splitter(
        splitter, values["chunk_size"], values["chunk_overlap"], index.embeddings, tokenizer
    )
    values["splitter"] = " by ".join(_name_of(part) for part in (splitter, tokenizer) if part is not None)
    changed = [
        f"{name} changed from {settings_before[name]!r} to {value!r}"
        for name, value in values.items()
        if settings_before[name] != value
    ]
    if "represent" in recorded and any(recorded.get(key) != value for key, value in represent.items()):
        changed.append("what represents chunks (kinds, model or prompts) changed")
    tell = changed and "chunk_size" in recorded
    notes = [f"{' and '.join(changed)}: all given files are split again"] if tell else []
    return SplitSettings(**values, cut=cut, represent=represent, notes=notes)


def _name_of(part: Any) -> str:
    """What a splitter or tokenizer is recorded as; a splitter of LangChain's with its sizes."""
    if isinstance(part, str | PathLike):
        return str(part)
    name = getattr(part, "__qualname__", None) or type(part).__qualname__
    sizes = [getattr(part, f"_chunk_{what}", None) for what in ("size", "overlap")]
    return f"{name}({sizes[0]}, {sizes[1]})" if None not in sizes else str(name)
