"""Gold that the searched documents do not hold: ids and spans of a set, looked up before a run."""

from __future__ import annotations

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
from rag_kit.evaluation.runs.results import describe_missing
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval.inner import is_kit_retriever
from rag_kit.retrieval.inside import inside

MAX_MISSING = 0.1  # share of the gold that a run may go on without
_PAGE = 500
_EDGE = 24  # characters of a span's begin and end that are looked for: chunks may cut it anywhere


def searched_documents(pipeline: Any) -> list[Any] | None:
    """Return the indexes and lists of documents that a pipeline searches; ``None`` if one is unknown.

    Retrievers of the kit say it, also inside graphs and functions; stores of others are not read.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> searched_documents(BM25Retriever.from_texts(["Tea is hot."]))
        [BM25Index(1 documents, k1=0.9, b=0.5, variant='lucene')]
    """
    retrievers = list(retrievers_in(pipeline))
    leaves = [_leaves(retriever) for retriever in retrievers]
    if not leaves or None in leaves:
        return None
    return list({id(leaf): leaf for found in leaves for leaf in found or ()}.values())


def searches_only_there(pipeline: Any) -> bool:
    """Tell whether a pipeline surely searches only its `searched_documents`.

    A function of others, alone or in a chain or a graph, can search anywhere.
    """
    return isinstance(pipeline, Runnable) and is_all_known(pipeline)


def _leaves(value: Any, depth: int = 0) -> list[Any] | None:
    """Return the indexes and stores that a retriever searches; ``None`` if one is unknown."""
    if isinstance(value, (BM25Index, DocumentIndex)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [value] if all(isinstance(item, Document) for item in value) else None
    if not isinstance(value, Runnable) or depth > 16:
        return None
    parts = value.searched() if is_kit_retriever(value) else inside(value)
    found = [_leaves(part, depth + 1) for part in parts]
    return None if not found or None in found else [leaf for leaves in found for leaf in leaves or ()]


def missing_gold(examples: Sequence[Example], sources: Iterable[Any]) -> dict[str, list[str]]:
    """Map each gold id or quoted span that no document has to the examples that name it.

    A span is there if its first and its last words stand in its document, whatever chunks cut it into. Spans that begin
    alike are one entry.

    Example:
        >>> lake = Document("The lake is deep.", id="lake", metadata={"file": "notes/lake.md"})
        >>> missing_gold([Example("q", "How deep?", relevant={"lake.md": 1, "lake.txt": 1})], [[lake]])
        {'lake.txt': ['q']}
    """
    return _look_for(examples, sources)[0]


def _look_for(examples: Sequence[Example], sources: Iterable[Any]) -> tuple[dict[str, list[str]], int]:
    """Return `missing_gold`, and the number of these ids and spans."""
    wanted: dict[str, list[str]] = {}
    spans: dict[tuple[str, str], list[str]] = {}
    for example in examples:
        for key in dict.fromkeys(name for name, grade in example.relevant.items() if grade > 0):
            wanted.setdefault(key, []).append(example.id)
        for span in example.spans:
            spans.setdefault((span.document, span.text), []).append(example.id)
    needles = {key: {text[:_EDGE], text[-_EDGE:]} for key in spans if (text := squeeze(key[1]))}
    lacking = set(wanted)
    for source in sources:
        before = ""
        for passage in _passages(source, lacking, bool(needles)):
            ids = set(passage.ids)
            lacking -= ids
            if any(not key[0] or key[0] in ids for key in needles):
                text = before + squeeze(passage.text)
                before = text[-2 * _EDGE :]
                _strike_out(needles, ids, text)
            if not lacking and not needles:
                break
    gone = {key: names for key, names in wanted.items() if key in lacking}
    named = dict(gone)
    for needle in needles:
        label = f'"{cut(one_line(needle[1]), 60)}"'
        named[label] = list(dict.fromkeys([*named.get(label, ()), *spans[needle]]))
    return named, len(gone) + len(needles)


def _passages(source: Any, lacking: set[str], whole: bool) -> Iterator[Passage]:
    """Yield the passages of a source: of an index first those whose id is wanted, then all, in order."""
    if isinstance(source, (BM25Index, DocumentIndex)):
        ids = source.ids if isinstance(source, BM25Index) else source.passage_ids()
        parts = [] if whole else [sorted(lacking)]
        parts += [ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE)]
        documents = map(source.get, parts)
        source = (document for part in documents for document in part)
    for item in source:
        yield item if isinstance(item, Passage) else Passage.of(item)


def _strike_out(needles: dict[tuple[str, str], set[str]], ids: set[str], text: str) -> None:
    """Remove the spans whose beginning and end a document's text has."""
    for key, parts in list(needles.items()):
        if not key[0] or key[0] in ids:
            parts -= {part for part in parts if part in text}
            if not parts:
                del needles[key]


def check_share(max_missing: Any) -> None:
    """Refuse a ``max_missing_gold`` that is neither a share nor ``None``."""
    is_share = type(max_missing) in (int, float) and 0 <= max_missing <= 1
    if max_missing is not None and not is_share:
        raise InvalidInputError(f"max_missing_gold is {max_missing!r:.80}; give a share from 0 to 1, or None")


def check_gold(
    examples: Sequence[Example], sources: Iterable[Any], max_missing: float
) -> dict[str, list[str]]:
    """Return `missing_gold`; refuse a set that lacks more than a share of its gold.

    Raises:
        InvalidInputError: If it is.
    """
    missing, count = _look_for(examples, sources)
    ids = {key for example in examples for key, grade in example.relevant.items() if grade > 0}
    total = len(ids) + len({(span.document, span.text) for example in examples for span in example.spans})
    if missing and count > max_missing * total:
        raise InvalidInputError(
            f"{describe_missing(missing, total, count)} Gold is an id of the index, or the name of a file as it was "
            f"ingested. Correct the set, or ask for the run as it is: max_missing_gold=1 (--max-missing-gold 1); "
            f"allowed is now a share of {max_missing:g}"
        )
    return missing
