"""Which column of a file is which field of an example: named by the caller, else known by its usual name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._lines import first_few
from rag_kit.evaluation.examples import FIELDS, Example
from rag_kit.evaluation.sets import values

#: Field -> names that its column usually has, best first; compared without case, ``-`` and blanks as ``_``.
USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "_id", "example_id", "question_id", "query_id", "qid"),
    "question": ("question", "user_input", "query", "input", "prompt", "问题"),
    "reference": (
        "reference", "reference_answer", "ground_truth", "expected_answer", "expected_output", "expected",
        "gold_answer", "ideal", "answer", "标准答案", "参考答案", "答案",
    ),
    "answers": ("answers", "accepted_answers", "gold_answers", "short_answers"),
    "reference_contexts": ("reference_contexts", "gold_contexts", "gold_passages", "context"),
    "relevant": ("relevant", "qrels", "relevant_ids", "relevant_docs", "doc_ids", "gold_ids", "reference_context_ids",
        "file", "files", "file_name", "filename", "文件", "文件名"),
    "spans": ("spans", "gold_spans"),
    "answerable": ("answerable", "is_answerable"),
    "history": ("history", "chat_history"),
    "tags": ("tags",),
    "metadata": ("metadata",),
}  # fmt: skip
_OWN = frozenset(FIELDS)
_UNANSWERABLE = ("is_impossible", "unanswerable")
#: A column of such a name holds whole answers in one table and short ones in the next; what is short is both.
_ANSWER = ("answer", "答案")
_SHORT = 60  # characters
_TAGS = ("type", "language", "category", "difficulty", "level", "kind")


class Columns:
    """Makes examples of records.

    Args:
        columns: Field -> name of its column. What is not named here is found by its usual name, unless its value is
            ``None``: then no column is read for it. ``"tags"`` may be a list of columns.
        source: What the records are from, for messages.
        spelled: Whether lists and objects may be spelled out in a text, as in CSV.

    Raises:
        InvalidInputError: If a field is unknown.
    """

    def __init__(
        self, columns: Mapping[str, str | Sequence[str] | None] | None, source: str, *, spelled: bool = False
    ) -> None:
        self.source = source
        self.spelled = spelled
        if columns is not None and not isinstance(columns, Mapping):
            raise InvalidInputError(f"columns is {columns!r:.80}; give field -> name of its column, or None")
        self.named = dict(columns or {})
        self.used: set[str] = set()
        self.seen: dict[str, None] = {}
        unknown = [name for name in self.named if name not in FIELDS]
        if unknown:
            raise InvalidInputError(
                f"columns names the field {unknown[0]!r:.80}; allowed are {', '.join(FIELDS)}: write "
                "{field: name of its column}"
            )
        for name, column in self.named.items():
            listed = name == "tags" and values.sequence_of_texts(column)
            if not (column is None or isinstance(column, str) or listed):
                raise InvalidInputError(f"columns[{name!r}] is {column!r:.80}; give the name of a column")

    def examples(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Example]:
        """An example for each ``(place, record)``; examples without an id get one from their content.

        Raises:
            InvalidInputError: If a record is no example (its place is named), an id comes twice, a named column is
                in no record, or there is no record.
        """
        places: dict[str, str] = {}
        count = 0
        for where, record in records:
            count += 1
            for name in record:
                if len(self.seen) < 1000:
                    self.seen.setdefault(str(name))
            example, own_id = self._example(record, where)
            number = 1
            key = example.id
            while key in places:
                if own_id:
                    raise InvalidInputError(
                        f"{where}: the id {key!r:.80} is that of {places[key]} too; ids must be unique"
                    )
                number += 1
                key = f"{example.id}-{number}"
            places[key] = where
            yield example if key == example.id else _renamed(example, key)
        if not count:
            raise InvalidInputError(f"{self.source} holds no record; there is nothing to evaluate with")
        self._check_used()

    def _check_used(self) -> None:
        for field, column in self.named.items():
            for name in [column] if isinstance(column, str) else column or ():
                if name not in self.used:
                    raise InvalidInputError(
                        f"{self.source} has no column {name!r} (for {field}); its columns are {_list(self.seen)}"
                    )

    def _example(self, record: Mapping[str, Any], where: str) -> tuple[Example, bool]:
        if not self.named and {"id", "question"} <= set(record) <= _OWN:
            try:  # as save() writes it: nothing is to be guessed, nothing is lost
                return Example.from_json(record), True
            except InvalidInputError:
                pass
        row = {str(name): value for name, value in record.items()}
        rest = dict(row)
        usual = {_usual(name): name for name in reversed(rest)}
        cells: dict[str, Any] = {}
        asked: str | None = None
        for field in FIELDS:
            if field == "tags" and not isinstance(self.named.get("tags"), str):
                continue
            name = self._column(field, rest, usual)
            if (
                name is not None and name in row
            ):  # a column that the caller named may be that of several fields
                self.used.add(name)
                asked = name if field == "question" else asked
                rest.pop(name, None)
                cell = values.plain_cell(row[name])
                if cell is not None:
                    cells[field] = self._parsed(cell, where, field)
                    if field == "reference" and self._is_short_answer(name, cell):
                        cells.setdefault("answers", cell)
        fields: dict[str, Any] = {"tags": self._tags(row, rest, cells, usual, where)}
        if "question" not in cells:
            if asked is not None:
                raise InvalidInputError(
                    f"{where}: there is no question; {asked!r:.80} is empty. Fill it, or take the record out"
                )
            raise InvalidInputError(
                f"{where}: there is no question; the columns are {_list(record)}. "
                'Name the one that holds it: columns={"question": "..."} (--column question=...)'
            )
        fields["question"] = values.one_text(cells["question"], where, "question")
        self._answers(cells, fields, where)
        for field, read in (("reference_contexts", values.texts), ("answers", values.texts)):
            if field in cells:
                fields[field] = read(cells[field], where, field)
        for field, convert in (
            ("relevant", values.grades),
            ("spans", values.spans),
            ("history", values.turns),
        ):
            if field in cells:
                fields[field] = convert(cells[field], where)
        if "answerable" in cells:
            fields["answerable"] = values.truth(cells["answerable"], where, "answerable")
        elif name := next(
            (usual[each] for each in _UNANSWERABLE if each in usual and usual[each] in rest), None
        ):
            cell = values.plain_cell(rest.pop(name))
            if cell is not None:
                fields["answerable"] = not values.truth(cell, where, name)
        fields["metadata"] = _metadata(cells, rest)
        own_id = "id" in cells
        fields["id"] = (
            values.identifier(cells["id"], where)
            if own_id
            else values.made_id(fields["question"], fields.get("reference"))
        )
        return _checked(fields, where), own_id

    def _column(self, field: str, rest: Mapping[str, Any], usual: Mapping[str, str]) -> str | None:
        if field in self.named:
            column = self.named[field]
            return column if isinstance(column, str) else None
        taken = {name for name in self.named.values() if isinstance(name, str)}
        for name in USUAL[field]:
            found = usual.get(name)
            if found is not None and found in rest and found not in taken:
                return found
        return None

    def _is_short_answer(self, name: str, cell: Any) -> bool:
        """Whether a column called "Answer", which the caller did not map, has a short answer to look for."""
        unnamed = "reference" not in self.named and "answers" not in self.named
        return unnamed and _usual(name) in _ANSWER and isinstance(cell, str) and len(cell.strip()) <= _SHORT

    def _parsed(self, cell: Any, where: str, field: str) -> Any:
        own = field in ("id", "question")
        return values.parsed(cell, where, field) if self.spelled and not own else cell

    def _answers(self, cells: dict[str, Any], fields: dict[str, Any], where: str) -> None:
        """The column of the reference may hold a list, or SQuAD's answers: then these are accepted answers."""
        if "reference" not in cells:
            return
        cell = cells["reference"]
        if isinstance(cell, (list, Mapping)):
            found = values.texts(cell, where, "reference")
            cells.setdefault("answers", found)
            if found:
                fields["reference"] = found[0]
        else:
            fields["reference"] = values.one_text(cell, where, "reference")

    def _tags(
        self,
        row: Mapping[str, Any],
        rest: dict[str, Any],
        cells: Mapping[str, Any],
        usual: Mapping[str, str],
        where: str,
    ) -> dict[str, str]:
        named = self.named.get("tags")
        found: dict[str, str] = {}
        if isinstance(named, str):
            cell = cells.get("tags", {})
            if isinstance(cell, Mapping):
                return {str(key): str(value) for key, value in cell.items()}
            return {named: str(cell)}
        if (
            "tags" not in self.named
            and "tags" in usual
            and isinstance(rest.get(usual["tags"]), (Mapping, str))
        ):
            cell = self._parsed(values.plain_cell(rest[usual["tags"]]), where, "tags")
            if isinstance(cell, Mapping):
                rest.pop(usual["tags"])
                found = {str(key): str(value) for key, value in cell.items()}
        wanted = (
            [usual[name] for name in _TAGS if name in usual and usual[name] in rest]
            if "tags" not in self.named
            else list(named or ())
        )
        for name in wanted:
            if name not in row:
                continue
            self.used.add(name)
            cell = values.plain_cell(row[name])
            if isinstance(cell, (str, int, float, bool)):
                rest.pop(name, None)
                found.setdefault(name, str(cell))
        return found


def _metadata(cells: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    given = cells.get("metadata", {})
    own = dict(given) if isinstance(given, Mapping) else {"metadata": given}
    others = {name: cell for name, value in rest.items() if (cell := values.plain_cell(value)) is not None}
    return {**others, **own}


def _checked(fields: dict[str, Any], where: str) -> Example:
    try:
        return Example(**fields)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from error


def _renamed(example: Example, key: str) -> Example:
    return Example.from_json({**example.to_json(), "id": key})


def _usual(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _list(names: Iterable[str]) -> str:
    found = [str(name)[:60] for name in names]
    return first_few(found, 20) if found else "none"
