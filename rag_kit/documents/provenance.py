"""Provenance: which stage, query, retriever, rank, score and weight brought a document here.

``metadata["rag_kit"]`` of what a retriever returns is one string, so that every store and checkpoint takes it;
``get_provenance`` gives ``{"score": float | None, "rank": int, "stages": [...], "notes": [...]}``. Inside a
retriever's call it is that dictionary itself. It is stripped before this kit writes anything to a store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from rag_kit.documents.identity import copy_metadata, to_plain

if TYPE_CHECKING:
    from langchain_core.documents import Document


PROVENANCE_KEY = "rag_kit"
_MAX_NOTES = 32
# The number of retrievers' calls around this code: inside one, records stay dictionaries, which are cheap to add to.
retriever_depth: ContextVar[int] = ContextVar("rag_kit_retriever_depth", default=0)


def get_provenance(doc: Document) -> dict[str, Any]:
    """Return a copy of a document's provenance, ``{"score", "rank", "stages", "notes"}``; ``{}`` if it has none.

    Whatever else a document holds under the key (it may come from anywhere) counts as none.

    Example:
        >>> from langchain_core.documents import Document
        >>> get_provenance(Document("text"))
        {}
    """
    return cast("dict[str, Any]", to_plain(peek_provenance(doc)))


def peek_provenance(doc: Document) -> Mapping[str, Any]:
    """Return a document's provenance, ``{}`` if it has none; it is not a copy, so never change it."""
    record = doc.metadata.get(PROVENANCE_KEY)
    if isinstance(record, str):
        record = decode_provenance(record)
    if not isinstance(record, Mapping) or not record:
        return {}
    stages, notes = record.get("stages"), record.get("notes")
    stages = stages if isinstance(stages, list | tuple) else []
    notes = notes if isinstance(notes, list | tuple) else []
    stages = [stage for stage in stages if isinstance(stage, Mapping)]
    return {**record, "stages": stages, "notes": list(map(str, notes))}


def with_provenance(
    doc: Document,
    *,
    score: float | None,
    rank: int,
    stage: str,
    retriever: str,
    query: str,
    weight: float | None = None,
    sources: Sequence[Mapping[str, Any]] | None = None,
    notes: Sequence[str] | None = None,
    **extra: Any,
) -> Document:
    """Copy a document and append one stage to its provenance.

    Args:
        doc: The document; it is not changed.
        score: The stage's score; also becomes the document's present score.
        rank: The document's rank at this stage, from 1.
        stage: What happened: ``"bm25"``, ``"dense"``, ``"fusion:rrf"``, ``"rerank"``...
        retriever: Name of the retriever or other part.
        query: The query that this stage answered.
        weight: The weight this stage carries in a fusion, if any.
        sources: Stages in place of the document's own earlier ones: those of all copies that are merged.
        notes: Notes in place of the document's own; repeats and those beyond 32 are left out.
        **extra: More about the stage; turned into plain JSON.

    Example:
        >>> from langchain_core.documents import Document
        >>> doc = Document("t")
        >>> doc = with_provenance(doc, score=1.5, rank=1, stage="bm25", retriever="bm25", query="q")
        >>> get_provenance(doc)["stages"]
        [{'stage': 'bm25', 'retriever': 'bm25', 'query': 'q', 'rank': 1, 'score': 1.5, 'weight': None}]
    """
    before = peek_provenance(doc)
    new_stage = _make_stage(stage, retriever, query, rank=rank, score=score, weight=weight, **extra)
    stages = before.get("stages", []) if sources is None else list(sources)
    notes = before.get("notes", []) if notes is None else notes
    record = {
        "score": new_stage["score"],
        "rank": new_stage["rank"],
        "stages": [*to_plain(stages), new_stage],
        "notes": list(dict.fromkeys(map(str, notes)))[:_MAX_NOTES],
    }
    return _copy_with_record(doc, record)


def _make_stage(stage: str, retriever: str, query: str, **numbers: Any) -> dict[str, Any]:
    """Make a stage of a record as plain JSON data."""
    plain: dict[str, Any] = to_plain({"stage": stage, "retriever": retriever, "query": query, **numbers})
    return plain


def add_note(doc: Document, note: str) -> Document:
    """Copy a document with a note for people, e.g. ``"degraded: ..."``, unless it has that note or 32 others.

    Example:
        >>> from langchain_core.documents import Document
        >>> get_provenance(add_note(Document("t"), "degraded: no dense search"))["notes"]
        ['degraded: no dense search']
    """
    record = {"score": None, "rank": None, "stages": [], "notes": [], **get_provenance(doc)}
    notes: list[str] = record["notes"]
    if note not in notes and len(notes) < _MAX_NOTES:
        record["notes"] = [*notes, note]
    return _copy_with_record(doc, record)


def passage_notes(documents: Iterable[Document]) -> list[str]:
    """Collect the notes on what was degraded while these documents were found, each once."""
    return list(dict.fromkeys(note for doc in documents for note in peek_provenance(doc).get("notes", ())))


def strip_provenance(doc: Document) -> Document:
    """Copy a document without its provenance, for writing it to a store."""
    return doc.model_copy(update={"metadata": copy_metadata(doc, without=PROVENANCE_KEY)})


def add_first_stage(
    hits: Iterable[tuple[Document, float]], stage: str, name: str, query: str, **extra: Any
) -> list[Document]:
    """Write into each document how it was found; return the documents in the order given, best first.

    The documents themselves are changed: they must be the retriever's own copies, and have no provenance yet.
    ``stage`` is what found them, such as ``"bm25"``; ``name`` is the retriever's; ``extra`` is more about the stage.
    """
    documents = []
    is_nested = retriever_depth.get() > 0  # the retriever around this one adds stages to the record
    shared = first_stage(stage, name, query, **extra)
    for rank, (doc, score) in enumerate(hits, start=1):
        record = first_record(shared, rank, score)
        doc.metadata[PROVENANCE_KEY] = record if is_nested else encode_provenance(record)
        documents.append(doc)
    return documents


def first_stage(stage: str, name: str, query: str, **extra: Any) -> dict[str, Any]:
    """Make the stage of documents that one search found, without their ranks and scores; see `first_record`."""
    return _make_stage(stage, name, query, rank=None, score=None, weight=None, **extra)


def first_record(shared: Mapping[str, Any], rank: int, score: Any) -> dict[str, Any]:
    """Make the record of a document that one search found, given the stage that its list shares."""
    # to_plain makes a Python float of numpy's, and None of NaN and infinities
    score = score if type(score) is float and isfinite(score) else to_plain(score)
    stages = [{**shared, "rank": rank, "score": score}]
    return {"score": score, "rank": rank, "stages": stages, "notes": []}


def compact_provenance(documents: list[Document]) -> list[Document]:
    """Encode the records of a retriever's results as strings, in place; other values stay as they are."""
    for doc in documents:
        record = doc.metadata.get(PROVENANCE_KEY)
        if type(record) is dict:
            doc.metadata[PROVENANCE_KEY] = encode_provenance(record)
    return documents


def peek_score(doc: Document) -> float | None:
    """Return the score that a document was found with, if any."""
    score = peek_provenance(doc).get("score")
    return float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None


def _copy_with_record(doc: Document, record: dict[str, Any]) -> Document:
    """Copy a document with another provenance record: as a dictionary inside a retriever's call, else as a string."""
    metadata = copy_metadata(doc, without=PROVENANCE_KEY)
    metadata[PROVENANCE_KEY] = record if retriever_depth.get() else encode_provenance(record)
    return doc.model_copy(update={"metadata": metadata})


_TEXT_FIELDS, _NUMBER_FIELDS = ("stage", "retriever", "query"), ("rank", "score", "weight")


def encode_provenance(record: Mapping[str, Any]) -> Any:
    """Encode a record as a string: each name and query once, a row of numbers for each stage.

    What is not a record of this kit (somebody else's, under this key) comes back as it is.

    Example:
        >>> stage = {"stage": "bm25", "retriever": "words", "query": "q", "rank": 1, "score": 2.5, "weight": None}
        >>> encode_provenance({"score": 2.5, "rank": 1, "stages": [stage], "notes": []})
        '{"score":2.5,"rank":1,"notes":[],"texts":["bm25","words","q"],"stages":[[0,1,2,1,2.5]]}'
    """
    try:
        short = {name: record[name] for name in ("score", "rank", "notes")} | _encode_stages(record["stages"])
        return _dump(short)
    except (KeyError, TypeError, ValueError, AttributeError):
        return record


def _dump(value: Any) -> str:
    """Write a value as compact JSON; a lone surrogate, which no store takes, as its escape."""
    # four times as fast as the standard library, and loaded with every LangChain document
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value).decode()
    except PydanticSerializationError:  # for a surrogate; "backslashreplace" escapes it as JSON does
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encode_stages(stages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Encode stages: all texts once, and for each stage the positions of its texts, its numbers, and other fields."""
    position_of: dict[Any, int] = {}  # of each text among the texts
    rows: list[list[Any]] = []

    def position(text: Any) -> int:
        return position_of.setdefault(text, len(position_of))  # that of a new text is the next one

    for stage in stages:
        others = {**stage}  # the fields that are neither texts nor numbers stay in it
        row: list[Any] = [position(others.pop(name, None)) for name in _TEXT_FIELDS]
        row += [others.pop(name, None) for name in _NUMBER_FIELDS]
        if type(queries := others.get("queries")) is list:
            others["queries"] = [position(query) for query in queries]
        if others:
            row.append(others)
        while row[-1] is None:  # numbers that are missing at the end are not written
            row.pop()
        rows.append(row)
    return {"texts": list(position_of), "stages": rows}


def decode_provenance(text: str) -> dict[str, Any]:
    """Decode a record from the string that `encode_provenance` made; return ``{}`` for any other string."""
    try:
        record: dict[str, Any] = json.loads(text)
        texts = record.pop("texts")
        stages: list[dict[str, Any]] = []
        for row in record["stages"]:
            padded = [*row, *[None] * 7][:7]  # what was missing at the end is None
            texts_of_stage = [texts[position] for position in padded[:3]]
            values, others = texts_of_stage + padded[3:6], padded[6]
            stage = dict(zip(_TEXT_FIELDS + _NUMBER_FIELDS, values, strict=True)) | (others or {})
            if "queries" in stage:
                stage["queries"] = [texts[position] for position in stage["queries"]]
            stages.append(stage)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return {}
    return {**record, "stages": stages}
