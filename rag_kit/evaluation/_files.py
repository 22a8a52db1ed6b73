"""Files of an evaluation: read record by record, each with its line, and written as a whole or not at all.

Whatever cannot be read or written is an `InvalidInputError` that names the file, and the line or the row.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from rag_kit.documents.files import json_line, replace_file
from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.parts import Unreadable, reason_of
from rag_kit.indexing.readers.sheets import first_sheet

_log = logging.getLogger(__name__)

Record = tuple[str, dict[str, Any]]
#: Endings of files whose cells are texts, with whatever people write where nothing is.
TABLES = (".csv", ".tsv", ".tab", ".xlsx")
JSON_FILES = (".jsonl", ".ndjson", ".json")
MAX_LINE = 2**28  # characters; a small file may unpack to a line without end


def has_ending(name: str, endings: tuple[str, ...]) -> bool:
    """Tell whether the name of a file has one of these endings, also before ``.gz``."""
    return name.lower().removesuffix(".gz").endswith(endings)


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of ``names`` that is a file in ``folder``, else ``None``."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def first_few(values: Iterable[Any], limit: int = 5) -> str:
    """Quote up to ``limit`` of the values, and say how many more there are."""
    quoted = [f"{str(value)[:60]!r}" for value in values]
    more = f" and {len(quoted) - limit} more" if len(quoted) > limit else ""
    return f"{', '.join(quoted[:limit]) or 'none'}{more}"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield ``(line number from 1, line with its end)`` of a UTF-8 file, plain or ``.gz``."""
    number = 0
    try:
        with _open_file(path) as file:
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    where = f"{path.name}:{number}"
                    raise InvalidInputError(f"{where}: a line of more than {MAX_LINE:,} characters")
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")  # drops a byte-order mark
    except UnicodeError as error:
        raise InvalidInputError(f"{path.name}:{number}: not valid UTF-8; save it as UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{path.name}: not a complete gzip file after line {number} ({error})"
        ) from error


def _open_file(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def read_jsonl(path: Path) -> Iterator[Record]:
    """Yield ``("file:line", object)`` for every line of a JSON Lines file that is not blank."""
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path.name}:{number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidInputError(
                    f"{where}: not valid JSON ({error}); give one object a line"
                ) from error
            if not isinstance(value, dict):
                raise InvalidInputError(f"{where}: a JSON {type(value).__name__}; give one object a line")
            yield where, value


def _read_json(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON list, the only object, or those of JSON Lines."""
    text = _decode_file(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith("["):
            return read_jsonl(path)
        raise InvalidInputError(f"{path.name}: not valid JSON ({error})") from error
    items = content if isinstance(content, list) else [content]
    if not all(isinstance(item, dict) for item in items):
        raise InvalidInputError(
            f"{path.name}: a list of something else than objects; give one object a question"
        )
    return ((f"{path.name}: item {number}", item) for number, item in enumerate(items, start=1))


def read_records(path: Path) -> Iterator[Record]:
    """Read a file by its suffix; yield each record with ``file:line``, or with the label of its row."""
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not there"
        raise InvalidInputError(f"{str(path)!r} is {kind}; give the name of a file")
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in _READERS:
        raise InvalidInputError(
            f"{path.name!r} has an ending that says nothing of its form; allowed are {', '.join(_READERS)}, a BEIR "
            "folder, or a folder of a Hugging Face data set"
        )
    return _READERS[ending](path)


def _read_parquet(path: Path) -> Iterator[Record]:
    try:
        frame = import_extra("pandas", f"reading {path.name!r}").read_parquet(path)
    except ImportError as error:  # of pandas, or of pyarrow, by which it reads
        raise MissingExtraError("eval", f"reading {path.name!r}") from error
    except Exception as error:  # those of pyarrow
        raise InvalidInputError(f"{path.name}: cannot be read as .parquet ({error})") from error
    return frame_records(frame, path.name)


def _read_xlsx(path: Path) -> Iterator[Record]:
    """Yield the rows below the header of an Excel file's first sheet; cells are the texts that Excel shows."""
    try:
        rows, others = first_sheet(path.read_bytes())
    except Exception as error:  # those of openpyxl and zipfile
        raise InvalidInputError(f"{path.name}: cannot be read as .xlsx ({reason_of(error)})") from error
    if others:
        _log.warning("%s: the first sheet is read, and not %s", path.name, first_few(others))
    columns = sorted({column for cells in rows.values() for column in cells})
    header: list[str] = []
    for row_number, cells in sorted(rows.items()):  # cells: column -> text, without empty ones
        where = f"{path.name}: row {row_number}"
        if not header:
            header = _check_header([cells.get(column, f"column {column}") for column in columns], where)
        else:
            yield where, {name: cells.get(column, "") for name, column in zip(header, columns, strict=True)}


def import_extra(module: str, feature: str, extra: str = "eval") -> Any:
    """Import a module that an extra brings; `MissingExtraError` names the feature that needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(extra, feature) from error


def frame_records(frame: Any, source: str) -> Iterator[Record]:
    """Yield the records of a pandas frame, each with the label of its row."""
    if not hasattr(frame, "itertuples") or not hasattr(frame, "columns"):
        raise InvalidInputError(f"the frame is a {type(frame).__name__}; give a pandas DataFrame")
    names = _check_header(list(map(str, frame.columns)), source)
    rows = zip(frame.index, frame.itertuples(index=False, name=None), strict=True)
    return ((f"{source}: row {index!r:.40}", dict(zip(names, row, strict=True))) for index, row in rows)


def huggingface_records(source: Any, name: str | None, split: str | None) -> tuple[str, Iterator[Record]]:
    """Return name and records of a Hugging Face data set: a folder, or a loaded one; ``split`` if it has several."""
    folder = source if isinstance(source, Path) else None
    data = _load_huggingface(folder) if folder else source
    if isinstance(data, Mapping):
        if split is None and len(data) == 1:
            split = next(iter(data))
        if split not in data:
            raise InvalidInputError(
                f"split is {split!r}; the data set has {first_few(data)}: name one with split="
            )
        data = data[split]
    if not hasattr(data, "features") or not hasattr(data, "info"):
        raise InvalidInputError(
            f"the set is a {type(data).__name__}; give a file, a folder, a datasets.Dataset or a DatasetDict"
        )
    name = name or (folder.resolve().name if folder else data.info.dataset_name) or "dataset"
    return name, _numbered_rows(data, name)


def _load_huggingface(folder: Path) -> Any:
    datasets = import_extra("datasets", "reading a Hugging Face data set")
    try:
        if find_file(folder, "dataset_dict.json", "state.json"):  # which save_to_disk writes
            return datasets.load_from_disk(str(folder))
        # strict: what is not there would be looked for on the Hub
        return datasets.load_dataset(str(folder.resolve(strict=True)), streaming=True)
    except Exception as error:  # its own classes, pyarrow's, and those of a file's reader
        raise InvalidInputError(
            f"{folder.name!r} is no data set that can be read; give a file of questions, a BEIR folder, or a folder "
            f"with Parquet, JSON Lines or CSV files (Hugging Face's datasets: {error})"
        ) from error


def _numbered_rows(data: Any, name: str) -> Iterator[Record]:
    """Yield the rows of a Hugging Face data set, each with its number."""
    try:
        for number, row in enumerate(data, start=1):
            yield f"{name}: row {number}", dict(row)
    except (OSError, ValueError) as error:  # pyarrow's are of these
        raise InvalidInputError(f"{name} cannot be read ({error})") from error


def _decode_file(path: Path) -> str:
    """Return the text of a file of at most `MAX_LINE` bytes, in UTF-8, or in GB18030 as Excel writes it."""
    try:
        with _open_file(path) as file:
            data = file.read(MAX_LINE + 1)
        if len(data) > MAX_LINE:
            raise ValueError(f"it has more than {MAX_LINE:,} bytes")
        return decode(data)
    except (Unreadable, ValueError, EOFError, OSError, zlib.error) as error:
        raise InvalidInputError(f"{path.name}: cannot be read ({error}); save it as UTF-8") from error


def _read_csv(path: Path) -> Iterator[Record]:
    """Yield the rows below the header, each with the number of its first line."""
    text = _decode_file(path)
    header_line = next((line for line in io.StringIO(text) if line.strip()), "")
    is_tsv = has_ending(path.name, (".tsv", ".tab"))
    # the sign that is most frequent in the header, outside of quotation marks
    delimiter = "\t" if is_tsv else max(",\t;|", key=re.sub('"[^"]*"', "", header_line).count)
    skip_blanks = f"{delimiter} " in header_line  # "Question, Answer": blanks are no part of the cells
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skip_blanks)
    next_line, header = 1, None  # next_line: first one of the next row; a cell may have several lines
    try:
        for row in rows:
            where, next_line = f"{path.name}:{next_line}", rows.line_num + 1
            if not any(cell.strip() for cell in row):  # rows of delimiters alone, as spreadsheets write
                continue
            if header is None:
                # spreadsheets write columns without a name beside a table
                named = [name.strip() or f"column {number}" for number, name in enumerate(row, start=1)]
                header = _check_header(named, where)
            elif len(row) != len(header):
                raise InvalidInputError(
                    f"{where}: {len(row)} cells, but the header has {len(header)}; put cells that hold "
                    f"{delimiter!r} into double quotes"
                )
            else:
                yield where, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise InvalidInputError(
            f"{path.name}:{next_line}: not valid CSV ({error}); put cells with quotes, line ends or the delimiter "
            "into double quotes, or save the set as JSON Lines"
        ) from error


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    **dict.fromkeys(JSON_FILES, read_jsonl),
    **dict.fromkeys(TABLES, _read_csv),
    **{".json": _read_json, ".parquet": _read_parquet, ".xlsx": _read_xlsx},
}


def _check_header(names: list[str], where: str) -> list[str]:
    """Return the names of the columns; refuse a name that comes twice."""
    if repeated := next((name for name, count in Counter(names).items() if count > 1), None):
        raise InvalidInputError(f"{where}: the header has the column {repeated!r:.80} twice; rename one")
    return names


def check_target(path: Path | None) -> None:
    """Refuse a path at which no file can be written; called before the work whose result it is for."""
    if path is None:
        return
    existing_parent = next((parent for parent in path.absolute().parents if parent.exists()), path)
    if path.is_dir() or not existing_parent.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder, or lies below a file; give the name of a file")


def write_file(path: Path, write: Callable[[IO[bytes]], object], *, mode: int | None = None) -> None:
    """Create or replace a file in one step with what ``write`` puts into it; write straight to a device."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as file:
                write(file)
        else:
            replace_file(path, write, mode=mode)
    except OSError as error:
        raise InvalidInputError(
            f"{str(path)!r} cannot be written ({error.strerror or error}); name another place, or change its "
            "permissions"
        ) from error


def write_json(path: Path, value: Any, *, mode: int | None = None) -> None:
    """Write an indented JSON file; NaN raises, a half of a surrogate pair is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write_file(path, lambda file: file.write(text.encode("utf-8", "backslashreplace")), mode=mode)


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line; NaN is refused."""
    write_file(path, lambda file: file.writelines(map(json_line, rows)))
