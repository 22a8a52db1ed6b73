"""The file of a sparse index: what stands in it, and what is checked when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import IndexFormatError, InvalidInputError
from rag_kit.indexing.bm25 import container
from rag_kit.indexing.bm25.checks import check_postings, columns_of, terms_of
from rag_kit.indexing.bm25.container import Kind, Sections
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.view import Columns
from rag_kit.indexing.sparse.encoding import SparseEncoder
from rag_kit.indexing.sparse.tfidf import TfidfEncoder

FORMAT_VERSION = 1
KIND = Kind(b"RAGKSPRS", FORMAT_VERSION, "sparse index")
_TFIDF = "tfidf"  # the encoder that the file holds; every other one is the caller's


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    name: str | None
    encoder: str | None
    two: bool  # queries had an encoder of their own
    tfidf: Any
    columns: Columns
    postings: Postings
    vocabulary: list[str]


def save(
    path: Path,
    name: str | None,
    encoder: SparseEncoder,
    two: bool,
    columns: Columns,
    postings: Postings,
    vocabulary: Sequence[str],
) -> None:
    """Write the file."""
    own = encoder.settings() if type(encoder) is TfidfEncoder else None
    kept = own is not None and own["analyzer"] is not None
    rows = list(
        zip(columns.ids, columns.document_ids, columns.texts, columns.metadata, columns.lengths, strict=True)
    )
    header = {
        "name": name,
        "encoder": _TFIDF if kept else None,
        "query_encoder": two,
        "documents": len(columns.ids),
    }
    sections = {
        "documents": container.dump_rows(rows),
        "vocabulary": container.dumps(list(vocabulary)),
        "encoder": container.dumps(own if kept else None),
        "pointers": postings.pointers.astype("<i8").tobytes(),
        "postings": postings.documents.astype("<i4").tobytes(),
        "weights": postings.counts.astype("<f4").tobytes(),
    }
    container.save(path, KIND, header, sections)


def load(path: Path) -> Stored:
    """Read a file and check all of it."""
    return container.load(path, KIND, _parsed)


def _parsed(file: Sections) -> Stored:
    name, encoder = file.header["name"], file.header["encoder"]
    two = file.header["query_encoder"]
    if not isinstance(name, (str, type(None))) or encoder not in (None, _TFIDF) or not isinstance(two, bool):
        raise ValueError(f"the encoder is {name!r}, {encoder!r}, {two!r}")
    columns = columns_of(file.lines("documents"), file.header["documents"])
    postings = Postings(
        np.frombuffer(file.raw("pointers"), "<i8").astype(np.int64),
        np.frombuffer(file.raw("postings"), "<i4").astype(np.int32),
        np.frombuffer(file.raw("weights"), "<f4").astype(np.float32),
    )
    check_postings(postings, len(columns.ids))
    counted = np.bincount(postings.documents, minlength=len(columns.ids))
    if not np.array_equal(counted, columns.lengths):
        raise ValueError("a document's length is not the number of its terms")
    vocabulary = terms_of(file.json("vocabulary"), postings.terms)
    return Stored(name, encoder, two, file.json("encoder"), columns, postings, vocabulary)


def pick_encoder(
    path: Path, stored: Stored, given: SparseEncoder | None, for_queries: SparseEncoder | None
) -> SparseEncoder:
    """The encoder for a loaded index: the stored TF-IDF one, or the caller's."""
    if stored.two and for_queries is None:
        raise InvalidInputError(
            f"{path} was built with an encoder of its own for queries; give it again: "
            "load(path, query_encoder=...)."
        )
    if stored.encoder is None:
        if given is None:
            raise InvalidInputError(
                f"{path} was built with an encoder of your own; give it again: load(path, encoder=...)."
            )
        return given
    if given is not None:
        raise InvalidInputError(
            f"{path} holds its TF-IDF encoder; leave encoder out, or build the index again."
        )
    try:
        return TfidfEncoder.from_settings(stored.tfidf)
    except (InvalidInputError, TypeError) as error:
        raise IndexFormatError(f"{path} holds an encoder that is not allowed: {error}") from error
