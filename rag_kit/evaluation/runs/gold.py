"""Gold that the searched documents do not hold: ids and spans of a set, looked up before a run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.documents.display import cut, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.answers import squeeze
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.fingerprint import is_all_known, retrievers_in
from rag_kit.evaluation.runs.results import MissingGold, describe_ambiguous, describe_missing
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.models.runnables import is_kit_retriever
from rag_kit.retrieval.inside import inside

_log = logging.getLogger(__name__)
MAX_MISSING = 0.1  # share of the gold that a run may go on without
_PAGE = 500  # passages read from an index at once
_EDGE = 24  # characters of a span's beginning and end that are looked for: chunks may cut it anywhere
SpanKey = tuple[str, str]  # document ("" for any) and text of a span


def look_for_gold(
    pipeline: Any, examples: Sequence[Example], corpus: Sequence[Passage] | None, max_missing: float | None
) -> tuple[MissingGold, dict[str, list[str]]]:
    """Look for the gold in the documents that a pipeline searches, else in the corpus.

    Log and return two mappings: missing gold -> ids of its examples, and gold names that several files have -> these
    files. Raise `InvalidInputError` if more than the share ``max_missing`` is missing; ``None``: nothing is looked up.
    """
    check_share(max_missing)
    sources = searched_documents(pipeline)
    # a function that is not the kit's, alone or in a chain or a graph, can search elsewhere too
    is_sure = sources is None or (isinstance(pipeline, Runnable) and is_all_known(pipeline))
    if sources is None and corpus:
        sources = [corpus]
    if max_missing is None or sources is None:
        return {}, {}
    if not is_sure:
        max_missing = 1  # all of it may be elsewhere
    missing = check_gold(examples, sources, max_missing)
    ambiguous = _find_ambiguous(examples, sources)
    if missing:
        _log.warning("%s", describe_missing(missing))
    if ambiguous:
        _log.warning("%s", describe_ambiguous(ambiguous))
    return missing, ambiguous


def searched_documents(pipeline: Any) -> list[Any] | None:
    """Return the indexes and lists of documents that a pipeline searches; ``None`` if one is unknown.

    Only retrievers of the kit are looked into, also inside graphs and functions; other stores are unknown.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> searched_documents(BM25Retriever.from_texts(["Tea is hot."]))
        [BM25Index(1 documents, k1=0.9, b=0.5, variant='lucene')]
    """
    by_identity: dict[int, Any] = {}  # each index and list once
    for retriever in retrievers_in(pipeline):
        sources = _sources_of(retriever)
        if sources is None:
            return None
        by_identity |= {id(source): source for source in sources}
    return list(by_identity.values()) or None


def _sources_of(value: Any) -> list[Any] | None:
    """Return the indexes and lists that a retriever, or one inside it, searches; ``None`` if one is unknown."""
    if isinstance(value, (BM25Index, DocumentIndex)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [value] if all(isinstance(item, Document) for item in value) else None
    if not isinstance(value, Runnable):
        return None
    sources: list[Any] = []
    for part in value.searched() if is_kit_retriever(value) else inside(value):
        part_sources = _sources_of(part)
        if part_sources is None:
            return None
        sources += part_sources
    return sources or None


def _find_ambiguous(examples: Sequence[Example], sources: Sequence[Any]) -> dict[str, list[str]]:
    """Map gold names that several files have to these: lake.md -> [x/lake.md, y/lake.md]."""
    gold = {key for example in examples for key, grade in example.relevant.items() if grade > 0}
    names = {key for key in gold if "/" not in key}
    ambiguous: dict[str, list[str]] = {}
    for source in sources if names else ():  # one by one, since each writes the path of a file in its own way
        paths_by_name: dict[str, set[str]] = {}
        for path in _file_paths(source):
            paths_by_name.setdefault(path.rpartition("/")[2], set()).add(path)
        for name in names & paths_by_name.keys():
            if len(paths_by_name[name]) > 1:
                ambiguous[name] = sorted(paths_by_name[name])
    return ambiguous


def _file_paths(source: Any) -> list[str]:
    if isinstance(source, DocumentIndex):
        return source.sources()
    return [str(passage.metadata.get("file")) for passage in _read_passages(source, set(), whole=True)]


def check_gold(examples: Sequence[Example], sources: Iterable[Any], max_missing: float) -> MissingGold:
    """Map each gold id, and each quoted span, that no document holds to the ids of its examples.

    A span is in a document if its first and its last characters are, whatever chunks cut it into. Spans that begin
    alike share a key. Raise `InvalidInputError` if more than the share ``max_missing`` of all gold is missing.

    Example:
        >>> lake = Document("The lake is deep.", id="lake", metadata={"file": "notes/lake.md"})
        >>> check_gold([Example("q", "How deep?", relevant={"lake.md": 1, "lake.txt": 1})], [[lake]], 1)
        {'lake.txt': ['q']}
    """
    examples_by_id: MissingGold = {}
    examples_by_span: dict[SpanKey, list[str]] = {}
    for example in examples:
        for key, grade in example.relevant.items():
            if grade > 0:
                examples_by_id.setdefault(key, []).append(example.id)
        for span in example.spans:
            examples_by_span.setdefault((span.document, span.text), []).append(example.id)
    missing_ids = set(examples_by_id)
    squeezed = {(document, text): squeeze(text) for document, text in examples_by_span}
    missing_edges = {key: {text[:_EDGE], text[-_EDGE:]} for key, text in squeezed.items() if text}
    for source in sources:
        _discard_present(source, missing_ids, missing_edges)
    missing = {key: ids for key, ids in examples_by_id.items() if key in missing_ids}
    count = len(missing) + len(missing_edges)
    for document, text in missing_edges:
        label = f'"{cut(one_line(text), 60)}"'
        ids_of_examples = [*missing.get(label, ()), *examples_by_span[document, text]]
        missing[label] = list(dict.fromkeys(ids_of_examples))
    total = len(examples_by_id) + len(examples_by_span)
    if missing and count > max_missing * total:
        raise InvalidInputError(
            f"{describe_missing(missing, total, count)} Gold is an id of the index, or the name of a file as it was "
            f"ingested. Correct the set, or ask for the run as it is: max_missing_gold=1 (--max-missing-gold 1); "
            f"allowed is now a share of {max_missing:g}"
        )
    return missing


def _discard_present(source: Any, missing_ids: set[str], missing_edges: dict[SpanKey, set[str]]) -> None:
    """Remove the ids, and the edges of spans, that a source has from those that are missing.

    A span is removed with the last of its edges: its beginning and its end may be in different passages.
    """
    tail = ""  # the end of the passage before, where a span may begin
    for passage in _read_passages(source, missing_ids, whole=bool(missing_edges)):
        missing_ids.difference_update(passage.ids)
        documents = {"", *passage.ids}  # "": spans of any document
        spans = [span for span in missing_edges if span[0] in documents]
        if spans:
            text = tail + squeeze(passage.text)
            tail = text[-2 * _EDGE :]  # more than enough for the part of an edge
            for span in spans:
                missing_edges[span] = {edge for edge in missing_edges[span] if edge not in text}
                if not missing_edges[span]:
                    del missing_edges[span]
        if not missing_ids and not missing_edges:
            return


def _read_passages(source: Any, missing_ids: set[str], *, whole: bool) -> Iterator[Passage]:
    """Yield the passages of an index or a list; unless all are needed (``whole``), first those with missing ids."""
    documents = source
    if isinstance(source, (BM25Index, DocumentIndex)):
        ids = source.ids if isinstance(source, BM25Index) else source.passage_ids()
        pages = [] if whole else [sorted(missing_ids)]
        pages += [ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE)]
        documents = (document for page in pages for document in source.get(page))
    for item in documents:
        yield item if isinstance(item, Passage) else Passage.of(item)


def check_share(max_missing: Any) -> None:
    """Refuse a ``max_missing_gold`` that is neither a share nor ``None``."""
    is_share = type(max_missing) in (int, float) and 0 <= max_missing <= 1
    if max_missing is not None and not is_share:
        raise InvalidInputError(f"max_missing_gold is {max_missing!r:.80}; give a share from 0 to 1, or None")
