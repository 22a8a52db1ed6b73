"""Records of a file, each with its place: JSON Lines, JSON, CSV, Parquet. All of it is bounded."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation._lines import raw_lines, read_jsonl

Record = tuple[str, Mapping[str, Any]]
MAX_LINE = 16 * 2**20
MAX_FILE = 512 * 2**20
MAX_RECORDS = 1_000_000
_DELIMITERS = ",\t;|"
TABLES = (".csv", ".tsv", ".tab")
JSON = (".jsonl", ".ndjson", ".json")


def existing(path: Path | str) -> Path:
    """The path, seen to be a file.

    Raises:
        InvalidInputError: If it is none.
    """
    path = as_path(path, "path")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not there"
        raise InvalidInputError(f"{str(path)!r} is {kind}; give the name of a file")
    return path


def stem(path: Path) -> str:
    """The name of a set from that of its file: without the ending, and without ``.gz``."""
    name = path.name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] if "." in name[1:] else name


def records_of(path: Path | str) -> tuple[Iterator[Record], bool]:
    """The records of a file by its ending, and whether lists may be spelled out in its cells.

    Raises:
        InvalidInputError: If there is no such file, or its ending is another one.
    """
    path = existing(path)
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(TABLES):
        return csv_records(path, "utf-8", None), True
    if name.endswith(".parquet"):
        return parquet_records(path), False
    if name.endswith(JSON):
        return json_records(path, "utf-8"), False
    raise InvalidInputError(
        f"{path.name!r} has an ending that says nothing of its form; allowed are .jsonl, .json, .csv, .tsv and "
        ".parquet, a BEIR folder, or a folder of a Hugging Face data set"
    )


def json_records(path: Path, encoding: str) -> Iterator[Record]:
    """One object a line; or, of a ``.json`` file that is no such, the objects of one list."""
    plain = path.name.removesuffix(".gz").lower().endswith(".json")
    lines = not plain or _looks_like_lines(path, encoding)
    return _jsonl_records(path, encoding) if lines else _list_records(path, encoding)


def _jsonl_records(path: Path, encoding: str) -> Iterator[Record]:
    """One object a line.

    Raises:
        InvalidInputError: If a line is none, or has more than 16 MiB, or the encoding is another one.
    """
    for number, (where, record) in enumerate(
        _hinted(path, read_jsonl(path, encoding=encoding, most=MAX_LINE))
    ):
        check_count(path.name, number)
        yield where, record


def _list_records(path: Path, encoding: str) -> Iterator[Record]:
    """The objects of one JSON array, or of the only list in a JSON object.

    Raises:
        InvalidInputError: If it is something else, or too large.
    """
    text = "".join(_bounded(path, _hinted(path, raw_lines(path, encoding=encoding, most=MAX_FILE))))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path.name}: not valid JSON ({error})") from error
    if isinstance(value, Mapping):
        value = _only_list(value) or value
    if not isinstance(value, list):
        raise InvalidInputError(f"{path.name}: a JSON {type(value).__name__}; give a list of objects")
    for number, record in enumerate(value, start=1):
        check_count(path.name, number)
        if not isinstance(record, Mapping):
            raise InvalidInputError(
                f"{path.name}: item {number} is a JSON {type(record).__name__}; give an object"
            )
        yield f"{path.name}: item {number}", record


def _bounded(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    """The lines of a file that is read as a whole; a small file may unpack to one without end."""
    length = 0
    for _, line in lines:
        length += len(line)
        if length > MAX_FILE:
            raise InvalidInputError(
                f"{path.name}: more than {MAX_FILE:,} characters; save the set as JSON Lines, one object a line"
            )
        yield line


def _only_list(value: Mapping[str, Any]) -> list[Any] | None:
    """The one list of objects in an object, such as ``{"version": 1, "data": [...]}``."""
    lists = [
        item
        for item in value.values()
        if isinstance(item, list) and item and all(isinstance(each, Mapping) for each in item)
    ]
    return lists[0] if len(lists) == 1 else None


def csv_records(path: Path, encoding: str, delimiter: str | None) -> Iterator[Record]:
    """The rows below a header line, in the form of RFC 4180; a row is placed by the line that it begins on.

    Raises:
        InvalidInputError: If a row has not as many cells as the header, a name is twice in the header, a quote is not
            closed, a row has more than 16 MiB, or a cell more than Python's csv module takes.
    """
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise InvalidInputError(f"delimiter is {delimiter!r}; give one character")
    lines = (line for _, line in _hinted(path, raw_lines(path, encoding=encoding, most=MAX_LINE)))
    first = next(lines, "")
    pending = 0

    def bounded() -> Iterator[str]:
        """The lines; a quote that is never closed does not read the rest of the file into one cell."""
        nonlocal pending
        for text in itertools.chain([first], lines):
            pending += len(text)
            if pending > MAX_LINE:
                raise csv.Error(f"a row of more than {MAX_LINE:,} characters")
            yield text

    if delimiter is None:
        tab = path.name.removesuffix(".gz").endswith((".tsv", ".tab"))
        delimiter = "\t" if tab else max(_DELIMITERS, key=first.count)
    blanks = (
        f"{delimiter} " in first
    )  # a header "Question, Answer, File": then blanks are no part of the cells
    rows = csv.reader(bounded(), delimiter=delimiter, strict=True, skipinitialspace=blanks)
    line, header, count = 1, None, 0
    while True:
        try:
            row, pending = next(rows, None), 0
        except csv.Error as error:
            raise InvalidInputError(
                f"{path.name}:{line}: not valid CSV ({error}); put cells with quotes, line ends or the delimiter "
                "into double quotes, or save the set as JSON Lines"
            ) from error
        if row is None:
            return
        where, line = f"{path.name}:{line}", rows.line_num + 1
        if not any(cell.strip() for cell in row):  # rows of delimiters alone, as spreadsheets write
            continue
        if header is None:
            header = _header(row, where)
            continue
        if len(row) != len(header):
            raise InvalidInputError(
                f"{where}: {len(row)} cells, but the header has {len(header)}; put cells that hold "
                f"{delimiter!r} into double quotes"
            )
        count += 1
        check_count(path.name, count)
        yield where, dict(zip(header, row, strict=True))


def parquet_records(path: Path) -> Iterator[Record]:
    """The rows of a Parquet file.

    Raises:
        InvalidInputError: If it is no such file.
        MissingExtraError: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("eval", "reading a Parquet file") from error
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                for record in batch.to_pylist():
                    number += 1
                    check_count(path.name, number)
                    yield f"{path.name}: row {number}", record
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(f"{path.name}: no Parquet file that can be read ({error})") from error


def frame_records(frame: Any) -> Iterator[Record]:
    """The rows of a pandas frame.

    Raises:
        InvalidInputError: If it is none, or has a column twice.
    """
    if not hasattr(frame, "to_dict") or not hasattr(frame, "columns"):
        raise InvalidInputError(f"the frame is a {type(frame).__name__}; give a pandas DataFrame")
    names = [str(each) for each in frame.columns]
    double = next((each for each in names if names.count(each) > 1), None)
    if double is not None:
        raise InvalidInputError(f"the frame has the column {double!r:.80} twice; rename one")

    rows = zip(frame.index, frame.itertuples(index=False, name=None), strict=True)
    for number, (index, row) in enumerate(rows):
        check_count("the frame", number)
        yield f"row {number} (index {index!r:.40})", dict(zip(names, row, strict=True))


def check_count(source: str, number: int) -> None:
    """Refuse a source without end."""
    if number > MAX_RECORDS:
        raise InvalidInputError(f"{source} has more than {MAX_RECORDS:,} records; give a part of it")


def _hinted(path: Path, items: Iterator[Any]) -> Iterator[Any]:
    """The items; a file in another encoding is refused with a word on how to read it."""
    try:
        yield from items
    except InvalidInputError as error:
        if "not valid UTF-8" not in str(error):
            raise
        with path.open("rb") as file:
            wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        name, likely = ("utf-16", "it begins like UTF-16: pass") if wide else ("gb18030", "or pass")
        raise InvalidInputError(
            f"{error}, {likely} encoding={name!r} (--encoding {name}), or what else it is in"
        ) from error


def _header(row: list[str], where: str) -> list[str]:
    names = [name.strip() for name in row]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise InvalidInputError(f"{where}: the header has the column {double!r:.80} twice; rename one")
    return names


def _looks_like_lines(path: Path, encoding: str) -> bool:
    """Whether a ``.json`` file holds an object a line, as some exports do."""
    lines = (
        line.strip()
        for _, line in _hinted(path, raw_lines(path, encoding=encoding, most=MAX_FILE))
        if line.strip()
    )
    first, second = next(lines, ""), next(lines, "")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (bool(second) or _only_list(value) is None)
