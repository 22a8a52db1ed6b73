"""Read a folder in BEIR's layout (Thakur et al., 2021, https://arxiv.org/abs/2104.08663)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import find_file, first_few, read_jsonl, read_lines
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.records import read_text
from rag_kit.indexing.files import as_path
from rag_kit.text import detect_language

CORPUS_ID = "corpus_id"
"""Metadata key for a document's id: splitters copy metadata, but not ``Document.id``."""

_Ids = Mapping[str, object]
#: Answers of which no span is searched: their letters are found in any text.
_VERDICTS = frozenset({"yes", "no", "maybe", "true", "false", "是", "否", "对", "错"})


def read_beir(folder: Path | str, split: str = "test") -> tuple[str, list[Example], list[Passage]]:
    """Read name, examples and corpus of a folder; see `rag_kit.evaluation.load_dataset`."""
    folder = as_path(folder, "folder")
    if not folder.is_dir():
        raise InvalidInputError(f"{str(folder)!r} is not a folder; give the folder of a retrieval data set")
    corpus_file = _require_file(folder, "corpus.jsonl", "corpus.jsonl.gz")
    queries_file = _require_file(folder, "queries.jsonl", "queries.jsonl.gz")
    qrels_file = _require_file(folder, "qrels.tsv", f"qrels/{split}.tsv")
    qa_file = find_file(folder, "qa.jsonl", "qa.jsonl.gz")
    passages = [_make_passage(*record) for record in _read_records(corpus_file, "_id")]
    corpus = {passage.id: passage for passage in passages}
    records = _read_records(queries_file, "_id")
    queries = {key: read_text(record.get("text"), f"{where}: 'text'") for where, key, record in records}
    unknown: list[str] = []  # queries and documents that the set does not hold, with file and line
    qrels = _read_qrels(qrels_file, queries, corpus, unknown)
    gold = _read_gold(qa_file, queries, corpus) if qa_file else {}
    if unknown or all(max(grades.values()) <= 0 for grades in qrels.values()):
        raise InvalidInputError(
            f"{folder.name!r} has judgements of what it does not hold ({first_few(unknown)}), or of no relevant "
            "document; remove these lines or add the missing records"
        )
    examples = []
    for key, question in queries.items():
        examples.append(_make_example(key, question, qrels.get(key, {}), gold.get(key, {}), corpus))
    return folder.resolve().name, examples, passages


def _require_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that is in the folder; refuse a folder without one."""
    path = find_file(folder, *names)
    if path is None:
        raise InvalidInputError(
            f"the data set {folder.name!r} has no {' or '.join(names)}; a retrieval set needs "
            "corpus.jsonl[.gz], queries.jsonl[.gz] and qrels.tsv (or qrels/test.tsv)"
        )
    return path


def _read_records(path: Path, id_name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield ``file:line``, id and other fields of each record; refuse an id that occurs twice."""
    ids: set[str] = set()
    for where, record in read_jsonl(path):
        key = read_text(record.pop(id_name, None), f"{where}: {id_name!r}")
        if key in ids:
            raise InvalidInputError(f"{where}: the id {key!r} occurs twice; ids must be unique")
        ids.add(key)
        yield where, key, record


def _make_passage(where: str, key: str, record: dict[str, Any]) -> Passage:
    """Make a passage of a record: title (if any), newline, text; its other fields become metadata."""
    title, text = record.pop("title", None) or "", record.pop("text", None)
    if not isinstance(title, str) or not isinstance(text, str):
        raise InvalidInputError(f"{where}: title is {title!r:.40}, text is {text!r:.40}; give texts")
    titled = {"title": title} if title else {}
    return Passage(key, f"{title}\n{text}" if title else text, {**record, **titled, CORPUS_ID: key})


def _make_example(
    key: str, question: str, grades: Mapping[str, int], gold: dict[str, Any], corpus: Mapping[str, Passage]
) -> Example:
    """Make the example of a query from its grades and from the fields that the gold answers give (``gold``)."""
    best = sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda doc: -grades[doc])
    metadata = gold.get("metadata", {})
    tags = {"language": detect_language(question)}
    if isinstance(metadata.get("type"), str):
        tags["type"] = metadata["type"]
    if metadata.get("question") == question:  # it says nothing new
        del metadata["question"]
    contexts = tuple(corpus[doc].text for doc in best)
    return Example(key, question, reference_contexts=contexts, relevant=grades, tags=tags, **gold)


def _read_qrels(path: Path, queries: _Ids, corpus: _Ids, unknown: list[str]) -> dict[str, dict[str, int]]:
    """Read query id -> document id -> grade; a header is skipped, and `unknown` takes what the set does not hold."""
    qrels: dict[str, dict[str, int]] = {}
    for number, line in read_lines(path):
        where, cells = f"{path.name}:{number}", line.rstrip("\r\n").split("\t")
        has_grade = cells[-1].lstrip("-").isdigit()
        is_header = number == 1 and len(cells) == 3 and cells[0] not in queries and not has_grade
        if is_header or not line.strip():  # the header is query-id, corpus-id, score
            continue
        if len(cells) != 3 or not re.fullmatch(r"\s*-?\d{1,9}\s*", cells[2]):
            raise InvalidInputError(
                f"{where}: {line[:80]!r}; give query id, document id and a whole number as grade, parted by tabs"
            )
        query, document, grade = cells[0], cells[1], int(cells[2])
        if query not in queries:
            unknown.append(f"{where}: query {query}")
        if document not in corpus:
            unknown.append(f"{where}: document {document}")
        if qrels.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InvalidInputError(f"{where}: query {query!r} and document {document!r} have two grades")
    return qrels


def _read_gold(path: Path, queries: _Ids, corpus: Mapping[str, Passage]) -> dict[str, dict[str, Any]]:
    """Map query ids to those fields of the example that ``qa.jsonl`` gives: answers, spans, reference."""
    gold: dict[str, dict[str, Any]] = {}
    for where, key, record in _read_records(path, "id"):
        answers = _pop_list(record, "answers", str, where)
        doc_ids = _pop_list(record, "doc_ids", str, where)
        starts = _pop_list(record, "answer_starts", int, where)
        unknown = [f"document {doc_id}" for doc_id in doc_ids if doc_id not in corpus]
        if key not in queries:
            unknown.insert(0, f"query {key}")
        if unknown:
            raise InvalidInputError(f"{where} names what the set does not hold: {first_few(unknown)}")
        docs = [corpus[doc_id] for doc_id in doc_ids]
        long_answers = [record.get(name) for name in ("reference", "long_answer")]
        text = next((answer for answer in long_answers if isinstance(answer, str)), None)
        gold[key] = {
            "reference": text or next(iter(answers), None),
            "answers": tuple(answers),
            "spans": _spans_at(answers, starts, docs, where) if starts else _find_spans(answers, docs),
            "answerable": bool(answers),
            "metadata": record,
        }
    return gold


def _pop_list(record: dict[str, Any], key: str, item_type: type, where: str) -> list[Any]:
    """Remove and return a list of one type from a record; a missing one is empty."""
    value = record.pop(key, None)
    if value is None:
        return []
    if not isinstance(value, list) or any(type(item) is not item_type for item in value):
        raise InvalidInputError(f"{where}: {key!r} must be a list of {item_type.__name__}")
    return value


def _spans_at(answers: list[str], starts: list[int], documents: list[Passage], where: str) -> list[GoldSpan]:
    """Make spans of the answers at ``answer_starts`` in the first gold document, without blanks at their ends."""
    if len(starts) != len(answers):
        raise InvalidInputError(f"{where}: {len(answers)} answers but {len(starts)} answer_starts")
    spans = []
    document = documents[0] if documents else Passage("", "")  # where no answer starts
    title = str(document.metadata.get("title", ""))
    text_begin = len(title) + 1 if title else 0  # answer_starts count from the text
    for answer, start in zip(answers, starts, strict=True):
        begin = start + text_begin
        if start < 0 or not answer or not document.text.startswith(answer, begin):
            raise InvalidInputError(
                f"{where}: the answer {answer[:60]!r} does not start at character {start} of the document"
            )
        leading_blanks = len(answer) - len(answer.lstrip())
        spans.append(GoldSpan(document.id, answer.strip(), begin + leading_blanks))
    return spans


def _find_spans(answers: Sequence[str], documents: Sequence[Passage]) -> list[GoldSpan]:
    """Find every occurrence of an answer in a gold document, not inside a longer word or number."""
    spans: list[GoldSpan] = []
    for answer in dict.fromkeys(answer.strip() for answer in answers):
        if not answer or answer.casefold() in _VERDICTS:
            continue
        # Chinese has no spaces: only a Latin letter or a digit at an end must not be inside a word
        before = "(?<![A-Za-z0-9])" if re.match("[A-Za-z0-9]", answer) else ""
        after = "(?![A-Za-z0-9])" if re.search("[A-Za-z0-9]$", answer) else ""
        pattern = re.compile(before + re.escape(answer) + after)
        for document in documents:
            matches = pattern.finditer(document.text)
            spans += [GoldSpan(document.id, answer, match.start()) for match in matches]
    return spans
