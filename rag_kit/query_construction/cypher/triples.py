"""A graph database made of the triples in an index (``represent=["triples"]``)."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from rag_kit.documents import Filter, compile_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.representing.kinds import REPRESENTATION, split_triple
from rag_kit.query_construction.cypher.query import check_installed

_SCHEMA = (
    "CREATE NODE TABLE Entity(name STRING PRIMARY KEY)",
    "CREATE REL TABLE RELATED(FROM Entity TO Entity, relation STRING, passage STRING, source STRING)",
)
_OPTIONS = "(header=false, auto_detect=false, parallel=false, escape='\"')"  # rows as csv.writer writes them
_BATCH = 1_000  # documents read from the index at once


def graph_database(index: DocumentIndex, file: str | PathLike[str], *, filter: Filter | None = None) -> int:
    """Make a graph database of the triples in an index, or make it anew after the index changed.

    The file written, which replaces an older one at once, holds what is in the index now; a statement that runs
    meanwhile ends on the older one. Entities are one node for all spellings that differ in case; each triple is a
    relationship with the id and source of its passage. Whoever may ask a graph may read all of it: for several tenants
    make a file each, with the filter of their searches.

    Args:
        index: An index whose passages were represented by ``triples``.
        file: The file to write.
        filter: Only triples of passages that it lets through.

    Returns:
        How many triples are in the graph.

    Raises:
        InvalidInputError: There are no triples, or the file is something else than a graph database.
        FilterError: The filter is malformed.
        MissingExtraError: Ladybug is not installed (extra ``graph``).
    """
    check_installed()
    triples = list(_triples(index, filter))
    if not triples:
        raise InvalidInputError(
            "No triples were found in the index (or none that the filter lets through): "
            "ingest(..., represent=['triples']) makes them."
        )
    path = Path(file)
    if path.exists() and not _is_graph(path):
        raise InvalidInputError(f"{os.fspath(file)!r} is not a graph database; name another file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as tables,
        tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=f".{path.name}.") as folder,
    ):
        graph = Path(folder) / "graph"
        _write(graph, triples, Path(tables))
        os.replace(graph, path)
    return len(triples)


def _triples(index: DocumentIndex, filter: Filter | None) -> Iterator[tuple[str, ...]]:
    """Yield subject, object and relation of each triple, with the id and the source of its passage."""
    passes = compile_filter(filter)
    spellings: dict[str, str] = {}  # the first spelling of an entity counts
    ids = index.ids()
    for start in range(0, len(ids), _BATCH):
        batch = []
        for document in index.get(ids[start : start + _BATCH]):
            representation = str(document.metadata.get(REPRESENTATION, "")).partition(":")[0]
            if representation == "triples" and passes(document.metadata):
                batch.append(document)
        with index.families() as view:
            places = view.places([str(document.id) for document in batch])
        for document in batch:
            triple = split_triple(document.page_content)
            if triple is None or document.id not in places:  # removed meanwhile
                continue
            subject, relation, object_ = triple
            subject = spellings.setdefault(subject.casefold(), subject)
            object_ = spellings.setdefault(object_.casefold(), object_)
            source = str(document.metadata.get("source", ""))
            yield subject, object_, relation, places[document.id].parent, source


def _write(file: Path, triples: list[tuple[str, ...]], tables: Path) -> None:
    """Write the triples to a new database, by CSV files in the folder `tables`: Ladybug reads them fastest."""
    import ladybug

    names = dict.fromkeys(name for triple in triples for name in triple[:2])
    with ladybug.Database(str(file), buffer_pool_size=1 << 28) as db, ladybug.Connection(db) as connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        for table, rows in (("Entity", [(name,) for name in names]), ("RELATED", triples)):
            with (tables / f"{table}.csv").open("w", encoding="utf-8", newline="") as written:
                csv.writer(written, quoting=csv.QUOTE_ALL).writerows(rows)
            connection.execute(f"COPY {table} FROM {json.dumps(written.name, ensure_ascii=False)} {_OPTIONS}")


def _is_graph(path: Path) -> bool:
    """Tell by its first bytes whether a file is a database of Ladybug."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"LBUG"
