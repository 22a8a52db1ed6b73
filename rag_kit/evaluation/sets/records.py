"""Make examples and passages of records from any source: match columns with fields, read cells as their values.

A cell that is no such value is an `InvalidInputError` that names the record and the column.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import TABLES, Record, first_few, has_ending
from rag_kit.evaluation.examples import FIELDS, Example, check_span
from rag_kit.evaluation.outputs import Passage
from rag_kit.indexing.readers.formats import FORMATS
from rag_kit.text.language import fold, word_set

if TYPE_CHECKING:
    from langchain_core.documents import Document

_log = logging.getLogger(__name__)


def _read_word_lists(file_name: str) -> dict[str, list[str]]:
    """Read a file of this folder, whose lines are ``name: word word ...``."""
    lines = Path(__file__).with_name(file_name).read_text(encoding="utf-8").splitlines()
    return {name: words.split() for name, _, words in (line.partition(":") for line in lines)}


#: Field -> names that its column usually has, best first; compared without case, ``-`` and blanks as ``_``.
USUAL = _read_word_lists("columns.txt")
#: Words in English and Chinese that people write into cells, or name columns by.
WORDS = _read_word_lists("words.txt")
#: Names of columns that hold a field in one table, and in the next something else, which is then metadata.
_AMBIGUOUS_COLUMNS = frozenset(WORDS["ambiguous_columns"])
_UNANSWERABLE_COLUMNS = ("is_impossible", "unanswerable")  # those of SQuAD 2.0, and like it
#: Names of columns that hold whole answers in one table and short ones in the next; a short answer counts as both.
_AMBIGUOUS_ANSWER_COLUMNS = frozenset(WORDS["ambiguous_answer_columns"])
_MAX_SHORT_ANSWER = 60  # characters
_TRUE, _FALSE = frozenset(WORDS["true"]), frozenset(WORDS["false"])
_GAPS = word_set("nan n/a #n/a null <na> - – — /")  # what people write into a table where nothing is
_PARSED = ("relevant", "spans", "reference_contexts", "history", "answerable")  # fields that no gap fits
UserColumns = Mapping[str, Any]  # field -> name of a column, or names for tags; None: no column
#: Role in a chat message, such as "user" -> what the message holds.
_ROLES = {role: name for name in ("question", "answer", "other") for role in WORDS[f"{name}_roles"]}
#: Signs between two ids of one cell: these always separate them, the next three only where every part looks like an id.
_SEPARATORS = re.compile(r"[;；|｜\n\r\v\f\x85\u2028\u2029]+")
#: Signs between two accepted answers of a table's cell; a semicolon, and a bar between blanks, belong to an answer.
_ANSWERS_BETWEEN = re.compile(r"[；\n\r]+|(?<=[^\s|｜])[|｜](?=[^\s|｜])")
_ID = re.compile(r"(?=.*[a-z])(?=.*\d)[\w.:/#-]+", re.ASCII | re.IGNORECASE)  # kb-12, not a number alone
_COMMAS = re.compile(r"\s*[,，、]\s*")
_COMMAS_OR_AND = re.compile(r"\s*[,，、]?\s*(?:[,，、&+]|以及|[和与及]|\band\s)\s*")
_COMMAS_AND_OR_BLANKS = re.compile(rf"{_COMMAS_OR_AND.pattern}|\s+")
_FILE_NAME = re.compile(r".*[^\s.]\.(?!\d+$)\w{1,8}$", re.DOTALL)  # "a b.pdf", but not "version 1.2"
_BULLET = re.compile(r"^\s*[-*•·–]\s+")
_QUOTATION_MARKS = ('""', "''", "“”", "‘’", "《》", "「」", "<>", "``")


def read_examples(records: Iterable[Record], columns: UserColumns | None, source: str) -> Iterator[Example]:
    """Make an example of each record; one without an id gets one from its content.

    ``columns`` is as in `EvaluationSet.load`; ``source`` is what the records are from, for messages.
    """
    user_columns = _check_columns(columns)
    records, is_table = list(records), source == "the frame" or has_ending(source, TABLES)
    rows = [(where, plain_row(record, is_table=is_table)) for where, record in records]
    where_by_id: dict[str, str] = {}
    # records and cells to warn of
    blank: list[str] = []
    repeated: list[str] = []
    with_gold: list[str] = []
    extra: dict[str, list[str]] = {}  # column -> records that keep it as metadata
    read: set[str] = set()  # columns that are a field of some record
    for (where, record), (_, raw) in zip(rows, records, strict=True):
        fields = _read_fields(record, user_columns, where, is_table=is_table)
        for (name, cell), raw_cell in zip(record.items(), raw.values(), strict=True):
            if name in fields.get("metadata", ()):
                extra.setdefault(name, []).append(where)
            elif cell is not None:
                read.add(name)
            elif isinstance(raw_cell, str) and raw_cell.strip():  # "N/A"
                blank.append(f"{name} {raw_cell.strip()} ({where})")
        if fields.get("answerable") is False and (fields.get("relevant") or fields.get("spans")):
            with_gold.append(where)
        reference = fields.get("reference") or _usual_reference(record, user_columns)
        key = fields.get("id") or id_of(fields["question"], reference)
        if key in where_by_id:
            if "id" in fields:
                raise InvalidInputError(
                    f"{where}: the id {key!r:.80} is that of {where_by_id[key]} too; ids must be unique, or left out: "
                    'columns={"id": None}'
                )
            repeated.append(f"{where} as {where_by_id[key]}")
            # the second example with the same content gets the id with "-2", the third with "-3"
            key = next(name for number in count(2) if (name := f"{key}-{number}") not in where_by_id)
        where_by_id[key] = where
        try:
            yield Example(**{**fields, "id": key})
        except InvalidInputError as error:
            raise InvalidInputError(f"{where}: {error}") from error
    if not where_by_id:
        raise InvalidInputError(f"{source} holds no record; there is nothing to evaluate with")
    _check_presence(user_columns, rows, source)
    unknown = [name for name in extra if name not in read]
    partly = [f"{name} ({where})" for name in extra if name in read for where in extra[name]]
    for message, found in (
        ("cells read as blank", blank),
        ("records with question and reference of another one count too", repeated),
        ("columns that are no field (see columns=, --column field=heading) stay in the metadata", unknown),
        ("cells that do not fit their column stay in the metadata", partly),
        ("records without an answer (answerable is false) have gold, which counts in retrieval", with_gold),
    ):
        if found:
            _log.warning("%s: %d %s: %s", source, len(found), message, first_few(found, 20))


def _check_presence(user_columns: UserColumns, records: Iterable[Record], source: str) -> None:
    """Refuse a column of the user's that no record has."""
    present = dict.fromkeys(name for _, record in records for name in record)
    for field, column in user_columns.items():
        for name in [column] if isinstance(column, str) else column or ():
            if name not in present:
                raise InvalidInputError(
                    f"{source} has no column {name!r} (for {field}); its columns are {first_few(present, 20)}"
                )


def _usual_reference(record: Mapping[str, Any], user_columns: UserColumns) -> str | None:
    """Return the reference that a record has without the user's columns, so that ids do not depend on these."""
    if "reference" in user_columns:  # it was left out, or is blank
        return None
    question_column = {field: name for field, name in user_columns.items() if field == "question"}
    with suppress(InvalidInputError):
        return _read_fields(record, question_column, "").get("reference")
    return None


def _check_columns(columns: Any) -> dict[str, Any]:
    """Return field -> name of the user's column; refuse unknown fields, and values that are no names."""
    by_field: dict[str, Any] = dict(columns or {})
    for field, name in by_field.items():
        is_list = field == "tags" and isinstance(name, list | tuple)
        if field not in FIELDS or not (is_list or isinstance(name, str | None)):
            raise InvalidInputError(
                f"columns[{field!r:.80}] is {name!r:.80}; give the name of a column, for the fields that are allowed: "
                f"{', '.join(FIELDS)}"
            )
    return by_field


def records_of_examples(
    records: Iterable[Record], header: dict[str, Any], passages: list[Passage]
) -> Iterator[Record]:
    """Yield the records of examples; put the header and passages that `save` wrote into the two arguments."""
    for where, record in records:
        name = next(iter(record), "") if len(record) == 1 else ""  # {"passage": {...}}
        if name not in ("evaluation_set", "passage") or not isinstance(record[name], Mapping):
            yield where, record
        elif name == "evaluation_set":
            header.update(record[name])
        else:
            try:
                passages.append(Passage(**record[name]))
            except InvalidInputError as error:
                raise InvalidInputError(f"{where}: no passage ({error}); give id and text") from error


def corpus_passages(corpus: Iterable[Passage | Document | str]) -> tuple[Passage, ...]:
    """Turn passages, documents or texts into the corpus of a set."""
    from langchain_core.documents import Document

    items = [] if isinstance(corpus, str) else list(corpus)
    if isinstance(corpus, str) or not all(isinstance(item, (Passage, Document, str)) for item in items):
        raise InvalidInputError(f"the corpus is {corpus!r:.80}; give a list of passages, documents or texts")
    by_id: dict[str, Passage] = {}
    for item in items:
        document = Document(page_content=item) if isinstance(item, str) else item
        passage = document if isinstance(document, Passage) else Passage.of(document)
        passage = Passage(passage.id, passage.text, to_plain(passage.metadata))  # provenance is of a search
        if by_id.setdefault(passage.id, passage).text != passage.text:
            raise InvalidInputError(
                f"two passages of the corpus have the id {passage.id!r:.80} and different texts; ids must be unique"
            )
    return tuple(by_id.values())


def _read_fields(
    record: Mapping[str, Any], user_columns: UserColumns, where: str, *, is_table: bool = False
) -> dict[str, Any]:
    """Return the fields of a record's example; a column that matches no field becomes metadata."""
    if not user_columns and {"id", "question"} <= set(record) <= set(FIELDS):
        with suppress(InvalidInputError):  # as save() writes it: nothing is to be guessed, nothing is lost
            Example(**record)
            return dict(record)
    row = {name: cell for name, cell in record.items() if cell is not None}
    folded = {fold_name(name): name for name in reversed(row)}  # reversed, so that the first of a name stays
    columns = _match_columns(row, folded, user_columns)
    if "question" not in columns:
        raise InvalidInputError(
            f"{where}: there is no question; the filled columns are {first_few(row, 20)}. "
            'Name the one that holds it: columns={"question": "..."} (--column question=...)'
        )
    fields = {field: read_cell(field, row[name], f"{where}: {name}") for field, name in columns.items()}
    cell = row.get(columns.get("answers", ""))
    if is_table and isinstance(cell, str) and fields["answers"] == [cell]:  # it is no list in JSON
        answers = map(str.strip, _ANSWERS_BETWEEN.split(cell))
        fields["answers"] = list(dict.fromkeys(filter(None, answers))) or [cell]
    _add_answers(fields, columns, user_columns)
    _add_documents_of_spans(fields)
    used = set(columns.values())
    opposite = next((folded[name] for name in _UNANSWERABLE_COLUMNS if name in folded), None)
    if opposite is not None and "answerable" not in fields:
        fields["answerable"] = not read_cell("answerable", row[opposite], f"{where}: {opposite}")
        used.add(opposite)
    usual_tags = [folded[name] for name in WORDS["tag_columns"] if name in folded]
    tag_columns = user_columns.get("tags", usual_tags) or ()
    if not isinstance(tag_columns, str):  # else it was read as the field "tags"
        tags = {name: str(row[name]) for name in tag_columns if isinstance(row.get(name), (str, int, float))}
        fields["tags"] = {**tags, **fields.get("tags", {})}
        used.update(tags)
    extra = {name: cell for name, cell in row.items() if name not in used}
    return {**fields, "metadata": {**extra, **fields.get("metadata", {})}}


def _match_columns(row: dict[str, Any], folded: dict[str, str], user_columns: UserColumns) -> dict[str, str]:
    """Map fields to filled columns: the user's, else the first with a usual name (``folded``: `fold_name` -> name)."""
    columns: dict[str, str] = {}
    for field in FIELDS:
        if field in user_columns:
            name = user_columns[field]
            if isinstance(name, str) and name in row:
                columns[field] = name
            continue
        usual = [folded[name] for name in USUAL[field] if name in folded]
        free = [name for name in usual if name not in user_columns.values()]
        if free and _holds_field(free[0], field, row):
            columns[field] = free[0]
    # in JSON a cell without a value may be a text such as "null"
    gaps = {field for field in _PARSED if str(row.get(columns.get(field, ""))).strip().casefold() in _GAPS}
    return {field: name for field, name in columns.items() if field not in gaps}


def _add_documents_of_spans(fields: dict[str, Any]) -> None:
    """Give spans without a document the only relevant one; with as many documents as spans, the n-th to the n-th."""
    spans, documents = fields.get("spans", []), list(fields.get("relevant", ()))
    if len(documents) in (1, len(spans)) and not any(span["document"] for span in spans):
        for number, span in enumerate(spans):
            span["document"] = documents[number % len(documents)]


def _add_answers(fields: dict[str, Any], columns: Mapping[str, str], user_columns: UserColumns) -> None:
    """Set the accepted answers from the reference: a list, or a short text of a column such as ``answer``."""
    answer = fields.get("reference")
    if isinstance(answer, list):  # the first is the reference, all are accepted
        fields["reference"] = answer[0] if answer else None
        fields.setdefault("answers", answer)
    elif answer and not {"reference", "answers"} & set(user_columns):
        is_ambiguous = fold_name(columns["reference"]) in _AMBIGUOUS_ANSWER_COLUMNS
        if is_ambiguous and len(answer.strip()) <= _MAX_SHORT_ANSWER:
            fields.setdefault("answers", [answer])


def fold_name(name: str) -> str:
    """Return the name of a column for comparison: without case, ``_`` for ``-`` and blanks."""
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def plain_row(record: Mapping[Any, Any], *, is_table: bool) -> dict[str, Any]:
    """Return a record as plain JSON, with ``None`` for each gap: NaN, NaT, a blank text, in a table "N/A" or a dash."""
    gaps = ("", *_GAPS) if is_table else ("",)

    def plain(cell: Any) -> Any:
        if isinstance(cell, str) and is_table:
            cell = cell.replace("_x000D_", "")  # how Excel's files write the line breaks of other programs
        is_blank = isinstance(cell, str) and cell.strip().casefold() in gaps
        return None if is_blank or type(cell).__name__ in ("NaTType", "NAType") else to_plain(cell)

    return {str(name): plain(cell) for name, cell in record.items()}


def read_cell(field: str, cell: Any, where: str) -> Any:
    """Read a cell as the value of a field; ``where`` names the cell in messages."""
    if field == "id":
        return read_text(cell, where).strip()
    if field == "reference" and (isinstance(cell, Mapping) or (isinstance(cell, list) and len(cell) != 1)):
        return read_texts(cell, where)
    if field in ("question", "reference"):
        return read_text(cell, where)
    cell = parse_cell(cell, where)
    if field in ("answers", "reference_contexts"):
        return read_texts(cell, where)
    if field == "relevant" and isinstance(cell, Mapping):
        # 1.0, as a table with gaps has it, is the grade 1
        return {key: int(g) if isinstance(g, float) and g.is_integer() else g for key, g in cell.items()}
    if field == "relevant":
        names = split_ids(cell) if isinstance(cell, str) else read_texts(cell, where)
        # Windows writes a\b.pdf what an index knows as a/b.pdf
        return {name.replace("\\", "/") if _FILE_NAME.match(name) else name: 1 for name in names}
    if field == "answerable":
        if (word := fold(str(cell)).strip()) not in _TRUE | _FALSE:
            raise InvalidInputError(f"{where} is {cell!r:.80}; give true or false")
        return word in _TRUE
    if field == "history":
        return read_turns(cell, where)
    if field in ("tags", "metadata") and not isinstance(cell, Mapping):
        column = where.rpartition(": ")[2]
        return {column: cell}
    return _read_spans(cell, where) if field == "spans" else cell


def split_ids(cell: str) -> list[str]:
    """Split the ids that people write into one cell, by semicolons, bars and line breaks.

    Commas, blanks, "and" and 和 may be part of a name: they separate ids only if each part has the suffix of a readable
    file, if all have one suffix, or (commas) if all have one form, such as d1, d2.

    Example:
        >>> split_ids("a.pdf;b.pdf"), split_ids("报告.docx；附件 2.xlsx\\n合同.pdf"), split_ids("a.pdf, b.pdf and c.md")
        (['a.pdf', 'b.pdf'], ['报告.docx', '附件 2.xlsx', '合同.pdf'], ['a.pdf', 'b.pdf', 'c.md'])
        >>> split_ids("Research and development, final.pdf"), split_ids("d1, d2")
        (['Research and development, final.pdf'], ['d1', 'd2'])
        >>> split_ids("Node.js guide.pdf; 2023.Q1 财报.pdf"), split_ids("《甲.pdf》、《乙.pdf》")
        (['Node.js guide.pdf', '2023.Q1 财报.pdf'], ['甲.pdf', '乙.pdf'])
    """
    parts = _split_bare(_SEPARATORS, cell)
    if "://" in cell and not all("://" in part for part in parts):  # a semicolon of an address
        return [cell.strip()]
    ids = [name for part in parts for name in _split_if_ids(part)]
    return list(dict.fromkeys(ids)) or [cell.strip()]


def _split_if_ids(text: str) -> list[str]:
    """Split a text at blanks, "and" or commas, if the parts look like ids; "R and D.pdf" is returned as the only id."""
    for separator in (_COMMAS_AND_OR_BLANKS, _COMMAS_OR_AND, _COMMAS):
        parts = _split_bare(separator, text)
        suffixes = {part.rpartition(".")[2].casefold() if _FILE_NAME.match(part) else "" for part in parts}
        is_readable = all(f".{suffix}" in FORMATS for suffix in suffixes)
        if is_readable or (len(suffixes) == 1 and "" not in suffixes):
            return parts
    if "://" in text:
        return [text]
    # with "a" for letters and "0" for digits, d1 and d22 both have the form "a0"
    forms = {re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", part)) for part in parts}
    return parts if len(forms) == 1 and "0" in forms.pop() else [text]


def _split_bare(separator: re.Pattern[str], text: str) -> list[str]:
    return list(filter(None, map(_bare_id, separator.split(text))))


def _bare_id(text: str) -> str:
    """Remove the bullet before an id, and quotation marks around it unless the closing one is within it, too."""
    name = _BULLET.sub("", text).strip()
    is_quoted = name[:1] + name[-1:] in _QUOTATION_MARKS and name[-1] not in name[1:-1]
    return name[1:-1].strip() if is_quoted else name


def _read_spans(cell: Any, where: str) -> list[Any]:
    """Read gold spans: objects, a number, or texts (of any document) that blank lines separate within the cell."""
    items = cell if isinstance(cell, list) else [cell]
    if isinstance(cell, str):
        items = [_bare_id(part) for part in re.split(r"\n\s*\n", cell.replace("\r\n", "\n"))]
    try:
        if type(cell) in (int, float):
            items = [read_text(cell, where)]
        return [check_span(item) for item in items]
    except ValueError as error:
        raise InvalidInputError(f"{where} is {cell!r:.120}; {error}") from error


def _holds_field(name: str, field: str, row: Mapping[str, Any]) -> bool:
    """Tell whether a column holds a field: by its name, or if that is ambiguous, by its cell."""
    if fold_name(name) not in _AMBIGUOUS_COLUMNS:
        return True
    if field in ("spans", "history") and _is_number(row[name]):
        return False
    try:
        value = read_cell(field, row[name], name)
        Example("q", "?", **{field: value})
    except InvalidInputError:
        return False
    return field != "relevant" or all(_ID.fullmatch(key) or _FILE_NAME.match(key) for key in value)


def _is_number(cell: Any) -> bool:
    with suppress(TypeError, ValueError, OverflowError):
        float(cell)
        return True
    return False


def parse_cell(cell: Any, where: str) -> Any:
    """Parse a text that is a list or an object in JSON or Python; return any other cell as it is."""
    text = cell.strip() if isinstance(cell, str) else ""
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return cell
    for parse in (json.loads, ast.literal_eval):
        try:
            return to_plain(parse(text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    if text[1:].lstrip()[:1] in ("'", '"'):  # it begins as a list of texts does
        raise InvalidInputError(
            f'{where} is {text!r:.80}, which is no list in JSON or Python; write ["a", "b"]'
        )
    return cell  # a text that is merely in brackets


def read_text(cell: Any, where: str) -> str:
    """Read a text that is not blank; a number (``3.0`` is ``"3"``) and a list of one text count as texts."""
    if isinstance(cell, list) and len(cell) == 1:
        cell = cell[0]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return str(cell)
    if not isinstance(cell, str) or not cell.strip():
        raise InvalidInputError(f"{where} is {cell!r:.120}; give a text that is not blank")
    return cell


def read_texts(cell: Any, where: str) -> list[str]:
    """Read distinct texts from a list, from one text, or from SQuAD's ``{"text": [...]}``, also within the list."""

    def unwrap(value: Any) -> Any:
        return value.get("text", value) if isinstance(value, Mapping) else value

    content = unwrap(cell)
    items = content if isinstance(content, list) else [content]
    texts = [text for text in map(unwrap, items) if text != ""]
    return list(dict.fromkeys(read_text(text, where) for text in texts))


def read_turns(cell: Any, where: str) -> list[dict[str, str]]:
    """Read earlier turns: objects with ``question`` and ``answer``, or chat messages."""
    turns: list[dict[str, str]] = []
    for item in cell if isinstance(cell, list) else [cell]:
        role, text = read_message(item)
        if isinstance(item, Mapping) and {"question", "answer"} <= set(item):
            turns.append({name: str(item[name]) for name in ("question", "answer")})
        elif role is None:
            raise InvalidInputError(
                f"{where}: a turn is {item!r:.80}; give question and answer, or role (user or assistant) and content"
            )
        elif role == "question":
            turns.append({"question": text, "answer": ""})
        elif role == "answer" and turns:  # a greeting answers nothing, and models refuse an empty question
            turns[-1]["answer"] = f"{turns[-1]['answer']}\n{text}".strip()
    return turns


def read_message(item: Any) -> tuple[str | None, str]:
    """Return ``("question" | "answer" | "other", text)`` of a chat message; a role of ``None`` if it is none."""
    message = item
    if isinstance(item, Mapping):  # LangChain's dumps have the message below data or kwargs
        message = item.get("data") or item.get("kwargs") or item
    if not isinstance(message, Mapping):
        return None, ""
    role, content = message.get("role") or message.get("type"), message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "\n".join(str(part) for part in parts if part)
    if not isinstance(role, str) or not isinstance(content, str):
        return None, ""
    name = role.casefold().removesuffix("chunk").removesuffix("message")  # "AIMessageChunk" is "ai"
    return _ROLES.get(name), content


def id_of(*parts: str | None) -> str:
    """Make an id from an example's content: the same in every file."""
    return f"q-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"
