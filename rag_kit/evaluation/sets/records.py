"""From records of any source to examples and passages: which column is which field, each cell as its field's value.

A cell that is no such value is an `InvalidInputError` that names its place.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import Record, first_few
from rag_kit.evaluation.examples import FIELDS, Example, check_span
from rag_kit.evaluation.outputs import Passage
from rag_kit.indexing.readers.formats import FORMATS

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Field -> names that its column usually has, best first; compared without case, ``-`` and blanks as ``_``.
_TABLE = Path(__file__).with_name("columns.txt").read_text(encoding="utf-8")
USUAL = {field: names.split() for field, _, names in (line.partition(":") for line in _TABLE.splitlines())}
#: Names of columns that hold spans in one table, and in the next something else, which is then metadata.
_MAYBE_SPANS = ("passage", "evidence", "原文", "依据")
_UNANSWERABLE = ("is_impossible", "unanswerable")
_TAGS = ("type", "language", "category", "difficulty", "level", "kind")
#: A column of such a name holds whole answers in one table and short ones in the next; what is short is both.
_ANSWER = ("answer", "答案")
_SHORT = 60  # characters
_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "1", "1.0", "是", "有"), True),
    **dict.fromkeys(("false", "no", "n", "0", "0.0", "否", "无", "没有"), False),
}
_ROLES = {"user": "question", "human": "question", "assistant": "answer", "ai": "answer"}
#: Signs between two ids of one cell: the first always part them, the others only where every part is an id by its form.
_PARTS = re.compile(r"[;；|｜\n\r\v\f\x85\u2028\u2029]+")
_COMMAS = re.compile(r"\s*[,，、]\s*")
_WORDS = re.compile(r"\s*[,，、]?\s*(?:[,，、&+]|以及|[和与及]|\band\s)\s*")
_BLANKS = re.compile(rf"{_WORDS.pattern}|\s+")
_FILE = re.compile(r".*[^\s.]\.(?!\d+$)\w{1,8}$", re.DOTALL)
#: A part in quotation marks that stands alone: blanks or signs around it, none of these marks in it.
_QUOTED = re.compile(
    r"""(?<![^\s;；|｜,，、&+和与及])(?:"[^"\n]+"|'[^'\n]+'|“[^“”\n]+”|‘[^‘’\n]+’|《[^《》\n]+》|「[^「」\n]+」|`[^`\n]+`)"""
    r"(?=[\s;；|｜,，、&+和与及以]|$)"
)
_NUMBER = re.compile(r"\0(\d+)\0")  # stands for one while the text around it is split
_BULLET = re.compile(r"^\s*[-*•·–]\s+")
_PAIRS_OF_MARKS = ('""', "''", "“”", "‘’", "《》", "「」", "<>", "``")


def read_examples(
    records: Iterable[Record], columns: Mapping[str, Any] | None, source: str
) -> Iterator[Example]:
    """Make an example of each record; one without an id gets one from its content.

    ``columns`` is as in `EvaluationSet.load`; ``source`` is what the records are from, for messages.
    """
    named = _check_columns(columns)
    positions: dict[str, str] = {}
    seen_fields: dict[str, None] = {}
    for where, record in records:
        seen_fields.update(dict.fromkeys(map(str, record)))
        fields = _read_fields(record, named, where)
        key = fields.get("id") or made_id(fields["question"], fields.get("reference"))
        if "id" in fields and key in positions:
            raise InvalidInputError(
                f"{where}: the id {key!r:.80} is that of {positions[key]} too; ids must be unique"
            )
        numbered = (f"{key}-{number}" for number in count(2))
        if key in positions:
            key = next(number for number in numbered if number not in positions)
        positions[key] = where
        try:
            yield Example(**{**fields, "id": key})
        except InvalidInputError as error:
            raise InvalidInputError(f"{where}: {error}") from error
    if not positions:
        raise InvalidInputError(f"{source} holds no record; there is nothing to evaluate with")
    for field, column in named.items():
        names = [column] if isinstance(column, str) else column or ()
        if missing := [name for name in names if name not in seen_fields]:
            present = first_few(seen_fields, 20)
            raise InvalidInputError(
                f"{source} has no column {missing[0]!r} (for {field}); its columns are {present}"
            )


def _check_columns(columns: Mapping[str, Any] | None) -> dict[str, Any]:
    named = dict(columns) if isinstance(columns, Mapping) else {"": columns} if columns else {}
    for field, name in named.items():
        several = field == "tags" and isinstance(name, list | tuple)
        if field not in FIELDS or not (several or isinstance(name, str | None)):
            raise InvalidInputError(
                f"columns[{field!r:.80}] is {name!r:.80}; give the name of a column, for the fields that are allowed: "
                f"{', '.join(FIELDS)}"
            )
    return named


def part_saved(
    records: Iterable[Record], header: dict[str, Any], passages: list[Passage]
) -> Iterator[Record]:
    """Separate the records of examples from the header and corpus that `EvaluationSet.save` adds."""
    for where, record in records:
        kind, content = next(iter(record.items())) if len(record) == 1 else ("", None)
        if kind not in ("evaluation_set", "passage") or not isinstance(content, Mapping):
            yield where, record
        elif kind == "evaluation_set":
            header.update(content)
        else:
            try:
                passages.append(Passage(**content))
            except InvalidInputError as error:
                raise InvalidInputError(f"{where}: no passage ({error}); give id and text") from error


def corpus_passages(corpus: Iterable[Passage | Document | str]) -> tuple[Passage, ...]:
    """Turn passages, documents or texts into the corpus of a set."""
    from langchain_core.documents import Document

    by_id: dict[str, Passage] = {}
    for item in [None] if isinstance(corpus, str) or not isinstance(corpus, Iterable) else corpus:
        entry = Document(page_content=item) if isinstance(item, str) else item
        if not isinstance(entry, (Passage, Document)):
            raise InvalidInputError(
                f"the corpus is {corpus!r:.80}; give a list of passages, documents or texts"
            )
        passage = entry if isinstance(entry, Passage) else Passage.of(entry)
        passage = Passage(passage.id, passage.text, to_plain(passage.metadata))  # provenance is of a search
        if by_id.setdefault(passage.id, passage).text != passage.text:
            raise InvalidInputError(
                f"two passages of the corpus have the id {passage.id!r:.80} and different texts; ids must be unique"
            )
    return tuple(by_id.values())


def _read_fields(record: Mapping[str, Any], user_columns: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields of a record's example; columns that match no field become metadata."""
    if not user_columns and {"id", "question"} <= set(record) <= set(FIELDS):
        try:  # as save() writes it: nothing is to be guessed, nothing is lost
            Example(**record)
            return dict(record)
        except InvalidInputError:
            pass
    row = {str(name): cell for name, value in record.items() if (cell := plain_cell(value)) is not None}
    folded = {_fold_name(name): name for name in reversed(row)}  # reversed, so that the first of a name stays
    columns = {field: name for field in FIELDS if (name := _find_column(field, user_columns, folded)) in row}
    if "spans" in columns and "spans" not in user_columns and not _can_be_spans(columns["spans"], row):
        del columns["spans"]
    if "question" not in columns:
        raise InvalidInputError(
            f"{where}: there is no question; the filled columns are {first_few(row, 20)}. "
            'Name the one that holds it: columns={"question": "..."} (--column question=...)'
        )
    fields = {field: field_value(field, row[name], f"{where}: {name}") for field, name in columns.items()}
    answer, guessed = fields.get("reference"), not {"reference", "answers"} & set(user_columns)
    if isinstance(answer, list):  # a column of answers: the first is the reference, all are accepted
        fields["reference"] = answer[0] if answer else None
        fields.setdefault("answers", answer)
    elif guessed and answer and _fold_name(columns["reference"]) in _ANSWER and len(answer.strip()) <= _SHORT:
        # a short one is an accepted answer too
        fields.setdefault("answers", [answer])
    if spans := fields.get("spans"):
        _give_documents(spans, list(fields.get("relevant", ())))
    used = set(columns.values())
    if "answerable" not in fields and (name := next((folded[n] for n in _UNANSWERABLE if n in folded), None)):
        fields["answerable"] = not field_value("answerable", row[name], f"{where}: {name}")
        used.add(name)
    tag_columns = user_columns.get("tags", [folded[name] for name in _TAGS if name in folded]) or ()
    if not isinstance(tag_columns, str):
        tags = {name: str(row[name]) for name in tag_columns if isinstance(row.get(name), (str, int, float))}
        fields["tags"] = {**tags, **fields.get("tags", {})}
        used.update(tags)
    extra = {name: cell for name, cell in row.items() if name not in used}
    return {**fields, "metadata": {**extra, **fields.get("metadata", {})}}


def _give_documents(spans: list[dict[str, Any]], documents: Sequence[str]) -> None:
    """Name the document of spans without one: the only relevant one, or one each in their order."""
    if len(documents) not in (1, len(spans)) or any(span["document"] for span in spans):
        return
    for number, span in enumerate(spans):
        span["document"] = documents[number % len(documents)]


def _find_column(field: str, user_columns: Mapping[str, Any], filled: Mapping[str, str]) -> Any:
    """Return the column of a field: the one that the user named, else the first filled one with a usual name."""
    if field in user_columns:
        return user_columns[field] if isinstance(user_columns[field], str) else None
    candidates = (filled[name] for name in USUAL[field] if name in filled)
    return next((name for name in candidates if name not in user_columns.values()), None)


def _fold_name(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def plain_cell(value: Any) -> Any:
    """Return a cell as plain JSON, ``None`` for a gap (NaN, NaT, blank text)."""
    if isinstance(value, str):
        value = value.replace("_x000D_", "")  # how Excel's files write the line breaks of other programs
    blank = isinstance(value, str) and not value.strip()
    return None if blank or type(value).__name__ in ("NaTType", "NAType") else to_plain(value)


def field_value(field: str, cell: Any, where: str) -> Any:
    """Read a cell as the value of a field."""
    if field == "id":
        return text_of(cell, where).strip()
    if field in ("question", "reference"):
        several = isinstance(cell, Mapping) or (isinstance(cell, list) and len(cell) != 1)
        return texts_of(cell, where) if several and field == "reference" else text_of(cell, where)
    cell = spelled_out(cell, where)
    if field in ("answers", "reference_contexts"):
        return texts_of(cell, where)
    if field == "relevant" and isinstance(cell, Mapping):
        return {key: int(g) if isinstance(g, float) and g.is_integer() else g for key, g in cell.items()}
    if field == "relevant":
        return dict.fromkeys(ids_of(cell) if isinstance(cell, str) else texts_of(cell, where), 1)
    if field == "answerable":
        if (answerable := _TRUTH.get(str(cell).strip().casefold())) is None:
            raise InvalidInputError(f"{where} is {cell!r:.80}; give true or false")
        return answerable
    if field == "history":
        return turns_of(cell, where)
    if field in ("tags", "metadata") and not isinstance(cell, Mapping):
        return {where.rpartition(": ")[2]: cell}
    return _spans_of(cell, where) if field == "spans" else cell


def ids_of(cell: str) -> list[str]:
    """Split the ids that people write into one cell, by semicolons, bars and line breaks.

    Commas, blanks, "and" and 和 may be part of a name: they separate ids only if each part has the suffix of a readable
    file, if all have one suffix, or (commas) if all have one form, such as d1, d2. Text in quotation marks stays whole.

    Example:
        >>> ids_of("a.pdf;b.pdf"), ids_of("报告.docx；附件 2.xlsx\\n合同.pdf"), ids_of("a.pdf, b.pdf and c.md")
        (['a.pdf', 'b.pdf'], ['报告.docx', '附件 2.xlsx', '合同.pdf'], ['a.pdf', 'b.pdf', 'c.md'])
        >>> ids_of("Research and development, final.pdf"), ids_of("d1, d2")
        (['Research and development, final.pdf'], ['d1', 'd2'])
        >>> ids_of("Node.js guide.pdf; 2023.Q1 财报.pdf"), ids_of('"a; b.pdf", "c.pdf"')
        (['Node.js guide.pdf', '2023.Q1 财报.pdf'], ['a; b.pdf', 'c.pdf'])
    """
    quoted: list[str] = []

    def replace_by_number(found: re.Match[str]) -> str:
        quoted.append(found[0])
        return f"\0{len(quoted) - 1}\0"

    numbered = cell if "\0" in cell else _QUOTED.sub(replace_by_number, cell)
    parts = list(filter(None, map(_bare_id, _PARTS.split(numbered))))
    if "://" in cell and not all("://" in part for part in parts):  # a semicolon of an address
        return [cell.strip()]
    names = (
        _NUMBER.sub(lambda found: quoted[int(found[1])], name)
        for part in parts
        for name in _split_weakly(part, quoted)
    )
    return list(dict.fromkeys(filter(None, map(_bare_id, names)))) or [cell.strip()]


def _split_weakly(text: str, quoted: Sequence[str]) -> list[str]:
    """Split ids by blanks, "and" or commas, if the parts then look like ids."""
    for sign in (_BLANKS, _WORDS, _COMMAS):
        parts = list(filter(None, map(_bare_id, sign.split(text))))
        if len(parts) > 1:
            numbers = [_NUMBER.fullmatch(part) for part in parts]
            names = [
                _bare_id(quoted[int(number[1])]) if number else part
                for number, part in zip(numbers, parts, strict=True)
            ]
            suffixes = {name.rpartition(".")[2].casefold() if _FILE.match(name) else "" for name in names}
            are_files = all(f".{suffix}" in FORMATS for suffix in suffixes)
            if all(numbers) or are_files or (len(suffixes) == 1 and all(suffixes)):
                return parts
    if _NUMBER.search(text):
        return [text]
    forms = {re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", part)) for part in parts}
    return parts if len(forms) == 1 and "0" in forms.pop() and "://" not in text else [text]


def _bare_id(text: str) -> str:
    """Remove the bullet before an id and the quotation marks around it."""
    name = _BULLET.sub("", text).strip()
    quoted = name[:1] + name[-1:] in _PAIRS_OF_MARKS and name[-1] not in name[1:-1]
    return name[1:-1].strip() if quoted else name


def _spans_of(cell: Any, where: str) -> list[Any]:
    """Read gold spans: objects, or texts alone, in any document; a blank line separates those of one cell."""
    items = re.split(r"\n\s*\n", cell.replace("\r\n", "\n")) if isinstance(cell, str) else cell
    try:
        return [check_span(item) for item in (items if isinstance(items, list) else [items])]
    except ValueError as error:
        raise InvalidInputError(f"{where} is {cell!r:.120}; {error}") from error


def _can_be_spans(name: str, row: Mapping[str, Any]) -> bool:
    """Tell whether a column holds spans, if its name alone does not say so."""
    if _fold_name(name) not in _MAYBE_SPANS:
        return True
    try:
        float(row[name])
        return False
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        Example("q", "?", spans=field_value("spans", row[name], name))
    except InvalidInputError:
        return False
    return True


def spelled_out(cell: Any, where: str) -> Any:
    """Read a list or an object written as JSON or Python into a text cell; other cells stay."""
    text = cell.strip() if isinstance(cell, str) else ""
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return cell
    for read in (json.loads, ast.literal_eval):
        try:
            return to_plain(read(text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    if text[1:].lstrip()[:1] in ("'", '"'):
        raise InvalidInputError(
            f'{where} is {text!r:.80}, which is no list in JSON or Python; write ["a", "b"]'
        )
    return cell  # a text that merely stands in brackets


def text_of(cell: Any, where: str) -> str:
    """Return a text that is not blank; a whole number of a table (``3.0``) and a list of one text are one."""
    if isinstance(cell, list) and len(cell) == 1:
        cell = cell[0]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return str(cell)
    if not isinstance(cell, str) or not cell.strip():
        raise InvalidInputError(f"{where} is {cell!r:.120}; give a text that is not blank")
    return cell


def texts_of(cell: Any, where: str) -> list[str]:
    """Return a list of distinct texts; also of one text, and of SQuAD's ``{"text": [...]}``."""
    if isinstance(cell, Mapping):
        cell = cell.get("text", cell)
    items = cell if isinstance(cell, list) else [cell]
    texts = (item.get("text", item) if isinstance(item, Mapping) else item for item in items)
    return list(dict.fromkeys(text_of(text, where) for text in texts if text != ""))


def turns_of(cell: Any, where: str) -> list[dict[str, str]]:
    """Read earlier turns: objects with ``question`` and ``answer``, pairs, or chat messages."""
    turns: list[dict[str, str]] = []
    for item in cell if isinstance(cell, list) else [cell]:
        pair = {"question": item[0], "answer": item[1]} if isinstance(item, list) and len(item) == 2 else item
        role, text = message(pair)
        if isinstance(pair, Mapping) and {"question", "answer"} <= set(pair):
            turns.append({name: str(pair[name]) for name in ("question", "answer")})
        elif role is None:
            raise InvalidInputError(
                f"{where}: a turn is {pair!r:.80}; give question and answer, or role and content"
            )
        elif role == "question":
            turns.append({"question": text, "answer": ""})
        elif role == "answer" and turns:
            turns[-1]["answer"] = f"{turns[-1]['answer']}\n{text}".strip()
    return turns


def message(item: Any) -> tuple[str | None, str]:
    """Return ``("question" | "answer" | "other", text)`` of a chat message; ``(None, "")`` if it is none."""
    inner = (item.get("data") or item.get("kwargs") or item) if isinstance(item, Mapping) else None
    if not isinstance(inner, Mapping):  # data or kwargs: a message as LangChain writes it out
        return None, ""
    role, content = inner.get("role") or inner.get("type"), inner.get("content")
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "\n".join(str(part) for part in parts if part)
    if not isinstance(role, str) or not isinstance(content, str):
        return None, ""
    return _ROLES.get(role.casefold(), "other"), content


def made_id(*parts: str | None) -> str:
    """Make an id from an example's content: the same in every file."""
    return f"q-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"
