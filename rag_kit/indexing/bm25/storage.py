"""The file of a BM25 index: what stands in it, and what is checked when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import IndexFormatError, InvalidInputError
from rag_kit.indexing.bm25 import container
from rag_kit.indexing.bm25.checks import check_postings, columns_of, terms_of
from rag_kit.indexing.bm25.container import Kind, Sections
from rag_kit.indexing.bm25.parameters import formula_of
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.scoring import Formula
from rag_kit.indexing.bm25.view import Columns
from rag_kit.text import Analyzer
from rag_kit.text.ngrams import CharacterNgrams

FORMAT_VERSION = 1
KIND = Kind(b"RAGKBM25", FORMAT_VERSION, "BM25 index")
_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}
_ANALYZERS: dict[str, type[Analyzer] | type[CharacterNgrams]] = {
    "words": Analyzer,
    "characters": CharacterNgrams,
}


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    formula: Formula
    analyzer: dict[str, Any] | None
    columns: Columns
    postings: Postings
    vocabulary: list[str]


def save(
    path: Path,
    settings: Mapping[str, Any],
    analyzer: Mapping[str, Any] | None,
    columns: Columns,
    postings: Postings,
    vocabulary: Sequence[str],
) -> None:
    """Write the file."""
    rows = list(
        zip(columns.ids, columns.document_ids, columns.texts, columns.metadata, columns.lengths, strict=True)
    )
    header = {
        "settings": dict(settings),
        "analyzer": analyzer,
        "documents": len(columns.ids),
        "count_bytes": postings.counts.itemsize,
    }
    sections = {
        "documents": container.dump_rows(rows),
        "vocabulary": container.dumps(list(vocabulary)),
        "pointers": postings.pointers.astype("<i8").tobytes(),
        "postings": postings.documents.astype("<i4").tobytes(),
        "counts": postings.counts.astype(f"<u{postings.counts.itemsize}").tobytes(),
    }
    container.save(path, KIND, header, sections)


def load(path: Path) -> Stored:
    """Read a file and check all of it."""
    return container.load(path, KIND, _parsed)


def _parsed(file: Sections) -> Stored:
    header = file.header
    settings, width = header["settings"], header["count_bytes"]
    if not isinstance(settings, dict) or set(settings) != {"k1", "b", "variant"}:
        raise ValueError(f"the settings are {settings!r}")
    if type(width) is not int or width not in _TYPES:
        raise ValueError(f"counts of {width!r} bytes")
    if not isinstance(header["analyzer"], (dict, type(None))):
        raise ValueError(f"the analyzer is {header['analyzer']!r}")
    columns = columns_of(file.lines("documents"), header["documents"])
    postings = Postings(
        np.frombuffer(file.raw("pointers"), "<i8").astype(np.int64),
        np.frombuffer(file.raw("postings"), "<i4").astype(np.int32),
        np.frombuffer(file.raw("counts"), f"<u{width}").astype(_TYPES[width]),
    )
    check_postings(postings, len(columns.ids))
    counted = np.bincount(postings.documents, postings.counts, len(columns.ids))
    if not np.array_equal(counted, columns.lengths):
        raise ValueError("a document's length is not the number of its terms")
    vocabulary = terms_of(file.json("vocabulary"), postings.terms)
    return Stored(formula_of(**settings), header["analyzer"], columns, postings, vocabulary)


def settings_of(analyzer: Callable[[str], list[str]]) -> dict[str, Any] | None:
    """What is stored of an analyzer; ``None`` for a function of the user's, which cannot be."""
    if isinstance(analyzer, (Analyzer, CharacterNgrams)) and type(analyzer) in _ANALYZERS.values():
        return analyzer.settings()
    return None


def analyzer_from(settings: Any) -> Analyzer | CharacterNgrams:
    """The analyzer that settings describe.

    Raises:
        InvalidInputError: They are not those of an analyzer of the kit.
    """
    if not isinstance(settings, dict) or settings.get("kind", "words") not in _ANALYZERS:
        raise InvalidInputError(f"{settings!r} are not the settings of an analyzer of this rag_kit.")
    stops = settings.get("stop_words", True)
    if not isinstance(stops, bool) and not (
        isinstance(stops, list) and all(isinstance(word, str) for word in stops)
    ):
        raise InvalidInputError(f"The stop words are {stops!r}; true, false or a list of strings is allowed.")
    return _ANALYZERS[settings.get("kind", "words")].from_settings(settings)


def pick_analyzer(
    path: Path, settings: Mapping[str, Any] | None, given: Callable[[str], list[str]] | None
) -> Callable[[str], list[str]]:
    """The analyzer for a loaded index: the stored one, or the caller's where none could be stored."""
    if settings is None:
        if given is None:
            raise InvalidInputError(
                f"{path} was built with an analyzer function of its own; give it again: load(path, analyzer=...)."
            )
        return given
    try:
        stored = analyzer_from(settings)
    except (InvalidInputError, TypeError) as error:
        raise IndexFormatError(f"{path} holds analyzer settings that are not allowed: {error}") from error
    if given is not None and given != stored:
        raise InvalidInputError(
            f"{path} was built with {stored!r}, not with {given!r}. Leave analyzer out, or build the index again."
        )
    return stored
