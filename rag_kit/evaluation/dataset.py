"""Retrieval data sets: a corpus, queries, which documents are relevant, and gold answers.

The layout is BEIR's (Thakur et al., 2021, https://arxiv.org/abs/2104.08663):

- ``corpus.jsonl[.gz]``: ``_id``, ``title``, ``text``; further fields become metadata
- ``queries.jsonl[.gz]``: ``_id``, ``text``
- ``qrels.tsv`` or ``qrels/<split>.tsv``: query id, document id, whole-number grade; a header line is allowed
- ``qa.jsonl[.gz]`` (optional): ``id``, ``answers``, ``doc_ids``, ``answer_starts`` (offsets in ``text``)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation._lines import find_file, first_few, read_jsonl, read_lines, take_id, take_text

if TYPE_CHECKING:
    from langchain_core.documents import Document

CORPUS_ID = "corpus_id"
"""Metadata key for a document's id: splitters copy metadata, but not ``Document.id``."""

_RESERVED = (CORPUS_ID, "rag_kit")


@dataclass(frozen=True)
class CorpusDocument:
    """One document of a corpus.

    Args:
        id: Its ``_id``.
        title: Its title, ``""`` when it has none.
        text: Its text.
        metadata: All other fields of its record.

    Example:
        >>> CorpusDocument("d1", "Tides", "The moon pulls the sea.").content
        'Tides\\nThe moon pulls the sea.'
    """

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text_offset(self) -> int:
        """Where ``text`` begins in ``content``, in characters."""
        return len(self.title) + 1 if self.title else 0

    @property
    def content(self) -> str:
        """What is indexed: title, a newline, text; the text alone where there is no title."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True)
class GoldAnswer:
    """The gold answers to one query.

    Args:
        id: The query's id.
        answers: Accepted answers; empty when the corpus does not answer the query.
        doc_ids: Documents that hold the answer.
        answer_starts: For each answer, where it starts in the ``text`` of the first of ``doc_ids``.
        metadata: All other fields of the record.
    """

    id: str
    answers: tuple[str, ...]
    doc_ids: tuple[str, ...]
    answer_starts: tuple[int, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RetrievalDataset:
    """A checked retrieval data set; make one with :func:`load_dataset`.

    Args:
        name: Its name, the name of its folder.
        corpus: Document id -> document, in the order of the file.
        queries: Query id -> text, in the order of the file.
        qrels: Query id -> document id -> grade; 0 or less means judged and not relevant.
        qa: Query id -> gold answers; empty when the set has none.
    """

    name: str
    corpus: Mapping[str, CorpusDocument]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    qa: Mapping[str, GoldAnswer] = field(default_factory=dict)

    @property
    def judged(self) -> list[str]:
        """Ids of the queries with at least one relevant document; only these can be scored."""
        return [q for q in self.queries if any(grade > 0 for grade in self.qrels.get(q, {}).values())]

    def documents(self) -> list[Document]:
        """The corpus as LangChain documents; ``id`` and ``metadata["corpus_id"]`` hold the document's id."""
        from langchain_core.documents import Document

        return [
            Document(
                id=doc.id,
                page_content=doc.content,
                metadata={**doc.metadata, **({"title": doc.title} if doc.title else {}), CORPUS_ID: doc.id},
            )
            for doc in self.corpus.values()
        ]

    def fingerprint(self) -> str:
        """SHA-256 of everything that decides a score: equal fingerprints make scores comparable."""
        digest = hashlib.sha256()
        for doc in self.corpus.values():
            digest.update(json.dumps([doc.id, doc.title, doc.text]).encode())
        for part in (self.queries, self.qrels):
            digest.update(json.dumps({key: part[key] for key in part}, sort_keys=True).encode())
        for gold in self.qa.values():
            digest.update(json.dumps([gold.id, gold.answers, gold.doc_ids, gold.answer_starts]).encode())
        return digest.hexdigest()


def load_dataset(folder: Path | str, *, split: str = "test") -> RetrievalDataset:
    """Read and check a data set.

    Args:
        folder: Folder with the files named in this module's text.
        split: Which file of ``qrels/`` to read where the set has that folder and no ``qrels.tsv``.

    Raises:
        InvalidInputError: If a file is missing, empty or malformed (named by file and line), if an id
            occurs twice, or if a relevance judgement or gold answer names an unknown document or query.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as name:
        ...     folder = Path(name)
        ...     _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Tides", "text": "Moon."}')
        ...     _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "What moves the sea?"}')
        ...     _ = (folder / "qrels.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1\\n")
        ...     dataset = load_dataset(folder)
        >>> dataset.judged, dataset.corpus["d1"].content
        (['q1'], 'Tides\\nMoon.')
    """
    folder = as_path(folder, "folder")
    if not isinstance(split, str):
        raise InvalidInputError(f"split is {split!r:.80}; give the name of a file in qrels/")
    if not folder.is_dir():
        raise InvalidInputError(f"{str(folder)!r} is not a folder; give the folder of a retrieval data set")
    corpus_file = _required(folder, "corpus.jsonl", "corpus.jsonl.gz")
    queries_file = _required(folder, "queries.jsonl", "queries.jsonl.gz")
    qrels_file = _required(folder, "qrels.tsv", f"qrels/{split}.tsv")
    qa_file = find_file(folder, "qa.jsonl", "qa.jsonl.gz")
    corpus = _read_corpus(corpus_file)
    queries = _read_queries(queries_file)
    qrels = _read_qrels(qrels_file, corpus, queries)
    qa = _read_qa(qa_file, corpus, queries) if qa_file else {}
    return RetrievalDataset(folder.resolve().name, corpus, queries, qrels, qa)


def _required(folder: Path, *names: str) -> Path:
    path = find_file(folder, *names)
    if path is None:
        raise InvalidInputError(
            f"the data set {folder.name!r} has no {' or '.join(names)}; a retrieval set needs "
            "corpus.jsonl[.gz], queries.jsonl[.gz] and qrels.tsv (or qrels/test.tsv)"
        )
    return path


def _read_corpus(path: Path) -> dict[str, CorpusDocument]:
    corpus: dict[str, CorpusDocument] = {}
    for where, record in read_jsonl(path):
        key = take_id(record, "_id", where)
        if key in corpus:
            raise InvalidInputError(f"{where}: the document id {key!r} occurs twice; ids must be unique")
        title = take_text(record, "title", where, default="")
        text = take_text(record, "text", where)
        for name in _RESERVED:
            if record.get(name, key) != key:
                raise InvalidInputError(f"{where}: the field {name!r} is reserved; give it another name")
        corpus[key] = CorpusDocument(key, title, text, record)
    if not corpus:
        raise InvalidInputError(
            f"{path.name} holds no document; nothing can be retrieved from an empty corpus"
        )
    return corpus


def _read_queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for where, record in read_jsonl(path):
        key = take_id(record, "_id", where)
        if key in queries:
            raise InvalidInputError(f"{where}: the query id {key!r} occurs twice; ids must be unique")
        text = take_text(record, "text", where)
        if not text.strip():
            raise InvalidInputError(f"{where}: the text of query {key!r} is blank")
        queries[key] = text
    if not queries:
        raise InvalidInputError(f"{path.name} holds no query; there is nothing to measure")
    return queries


def _read_qrels(
    path: Path, corpus: Mapping[str, CorpusDocument], queries: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    dangling: list[str] = []
    for order, (number, line) in enumerate(read_lines(path)):
        where = f"{path.name}:{number}"
        cells = line.split("\t")
        if len(cells) != 3:
            raise InvalidInputError(
                f"{where}: {len(cells)} columns; give query id, document id and grade, parted by tabs"
            )
        query, document, grade_text = cells
        try:
            grade = int(grade_text)
        except ValueError:
            if order == 0 and query not in queries:
                continue  # the header
            raise InvalidInputError(f"{where}: the grade {grade_text!r} is not a whole number") from None
        if query not in queries:
            dangling.append(f"query {query} (line {number})")
        if document not in corpus:
            dangling.append(f"document {document} (line {number})")
        if qrels.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InvalidInputError(f"{where}: query {query!r} and document {document!r} have two grades")
    if dangling:
        raise InvalidInputError(
            f"{path.name} names what the set does not hold: {first_few(dangling)}; "
            "remove these lines or add the missing records"
        )
    if not any(grade > 0 for grades in qrels.values() for grade in grades.values()):
        raise InvalidInputError(
            f"{path.name} names no relevant document; there is nothing to measure against"
        )
    return qrels


def _read_qa(
    path: Path, corpus: Mapping[str, CorpusDocument], queries: Mapping[str, str]
) -> dict[str, GoldAnswer]:
    gold: dict[str, GoldAnswer] = {}
    dangling: list[str] = []
    for where, record in read_jsonl(path):
        key = take_id(record, "id", where)
        if key in gold:
            raise InvalidInputError(f"{where}: the id {key!r} occurs twice; ids must be unique")
        answers = _take_list(record, "answers", str, where)
        doc_ids = _take_list(record, "doc_ids", str, where)
        starts = _take_list(record, "answer_starts", int, where)
        if key not in queries:
            dangling.append(f"query {key} ({where})")
        missing = [doc for doc in doc_ids if doc not in corpus]
        dangling.extend(f"document {doc} ({where})" for doc in missing)
        if starts and not missing:
            _check_starts(answers, starts, corpus[doc_ids[0]].text if doc_ids else "", where)
        gold[key] = GoldAnswer(key, tuple(answers), tuple(doc_ids), tuple(starts), record)
    if dangling:
        raise InvalidInputError(f"{path.name} names what the set does not hold: {first_few(dangling)}")
    return gold


def _take_list(record: dict[str, Any], key: str, kind: type, where: str) -> list[Any]:
    value = record.pop(key, None)
    if value is None:
        return []
    if not isinstance(value, list) or any(type(item) is not kind for item in value):
        raise InvalidInputError(f"{where}: {key!r} must be a list of {kind.__name__}")
    return value


def _check_starts(answers: list[str], starts: list[int], text: str, where: str) -> None:
    if len(starts) != len(answers):
        raise InvalidInputError(f"{where}: {len(answers)} answers but {len(starts)} answer_starts")
    for answer, start in zip(answers, starts, strict=True):
        if start < 0 or not answer or not text.startswith(answer, start):
            raise InvalidInputError(
                f"{where}: the answer {answer[:60]!r} does not start at character {start} of the document"
            )
