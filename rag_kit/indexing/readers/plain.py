"""Files of plain text: Markdown, notes, notebooks, CSV, JSON and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Scalar, Unreadable, leave_out
from rag_kit.indexing.readers.tables import TOP_ROWS, are_notes, continues_table, find_header, row_groups
from rag_kit.indexing.splitting.structure import first_heading

_DATA_URI = re.compile(  # also over lines, of which all are long but the last
    r"data:[a-zA-Z0-9.+/-]+;base64,[A-Za-z0-9+/=]{40,}(?:\s+[A-Za-z0-9+/]{60,}=*)*(?:\s+[A-Za-z0-9+/=]+(?=[)\"'>]))?"
)
_FRONT_TITLE = re.compile(r"\A---\n(?:.*\n){0,60}?title:[ \t]*(.+)\n(?:.*\n){0,200}?---\n")
_DELIMITER_HINT = re.compile(r"[\"']?sep=(.)[\"']?[ \t]*\n", re.I)  # Excel's, in the first line
_OUTPUT_CHARACTERS = 2_000  # of a cell of a notebook
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours
_OBJECT = re.compile(r"<[^<>\n]+>")
_OUTPUT_KINDS = ("text/markdown", "text/plain", "text/html", "text/latex")  # the first that there is, is read
_MAX_MISFITS = 50  # lines of a CSV file with misplaced quotation marks; then each line is a row
_TITLE_KEYS = ("title", "name", "heading", "标题")


def _markdown_title(text: str) -> str:
    """Return the title of a markdown text: that of its front matter, else its first heading."""
    if front := _FRONT_TITLE.match(text):
        return front[1].strip().strip("\"'")[:300]
    return first_heading(text[:20_000])


def read_md(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: the text as it is, without images written into it as base64."""
    text = _DATA_URI.sub("", decode(data))
    yield Part(text, {"title": _markdown_title(text)})


def read_txt(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: the text as it is."""
    yield Part(decode(data))


def read_ipynb(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: markdown cells, code in fences, and outputs (those of a cell cut at 2,000 characters)."""
    notebook = _load_json(decode(data))
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise Unreadable("it has no list of cells", "Upgrade it with: jupyter nbconvert --to notebook")
    language = str(_field(notebook, "metadata", "language_info", "name"))
    language = language if language.isalnum() else "python"
    blocks: list[str] = []
    for number, cell in enumerate(notebook["cells"], 1):
        source = _join_source(_field(cell, "source")).strip("\n")
        if _field(cell, "cell_type") == "code":
            if source.strip():
                blocks.append(f"```{language}\n{source}\n```")
            if output := _output_text(_field(cell, "outputs"), number):
                blocks.append(f"```text\n{output}\n```")
        elif source.strip():
            blocks.append(_DATA_URI.sub("", source))
    text = "\n\n".join(blocks)
    yield Part(text, {"title": _markdown_title(text)})


def _field(value: Any, *names: str) -> Any:
    """Return the value under a path of names in a JSON object; ``""`` if there is none."""
    for name in names:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return value


def _join_source(source: Any) -> str:
    if isinstance(source, list):
        return "".join(piece for piece in source if isinstance(piece, str))
    return source if isinstance(source, str) else ""


def _output_text(outputs: Any, number: int) -> str:
    """Return what a code cell printed, returned or raised, without pictures, cut, and safe inside a fence."""
    texts: list[str] = []
    for output in outputs if isinstance(outputs, list) else []:
        versions = {kind: _join_source(_field(output, "data", kind)) for kind in _OUTPUT_KINDS}
        if html := versions["text/html"]:
            with leave_out(f"output of cell {number}"):
                versions["text/html"] = to_markdown(parse_html(html))
        if _OBJECT.fullmatch(versions["text/plain"].strip()):  # <Figure size 640x480> is wanted last
            versions["text/plain"] = versions.pop("text/plain")
        failure = [_join_source(_field(output, name)) for name in ("ename", "evalue")]
        texts += [_join_source(_field(output, "text")), ": ".join(filter(None, failure))]
        texts.append(next(filter(str.strip, versions.values()), ""))  # the first version that is not blank
    text = _DATA_URI.sub("", "\n".join(text.strip("\n") for text in texts if text.strip()))
    text = _TERMINAL.sub("", text)
    if len(text) > _OUTPUT_CHARACTERS:
        rest = f"output of cell {number} after {_OUTPUT_CHARACTERS} characters"
        write_note(f"{rest}{LEFT_OUT}it has {len(text)}")
    return text[:_OUTPUT_CHARACTERS].replace("```", "'''")


def read_csv(data: bytes, context: Context) -> Iterator[Part]:
    """Yield groups of rows (``row_start`` to ``row_end``) as markdown tables, with lines above a header as text."""
    text = decode(data)
    csv.field_size_limit(2**27)  # characters of a cell; Python's own limit is 131,072
    hint = _DELIMITER_HINT.match(text)
    delimiter = hint[1] if hint else _find_delimiter(text)
    text = text[hint.end() :] if hint else text
    rows_before = 0
    try:
        numbered = _numbered_by_table(_csv_rows(text, delimiter, lines_before=int(hint is not None)))
        for table_number, run in groupby(numbered, key=itemgetter(0)):
            rows = (row for _, row in run)
            first_rows = list(islice(rows, TOP_ROWS))
            is_note = table_number > 0 and are_notes(first_rows)
            header = len(first_rows) if is_note else find_header(first_rows)  # all rows above it are text
            lines = [filter(None, map(str.strip, row)) for row in first_rows[:header]]
            separator = f"{delimiter.strip()} "
            above = "\n".join(map(separator.join, lines)) + "\n\n" if lines else ""
            if is_note:
                yield Part(above.strip(), {"row_start": rows_before + 1, "row_end": rows_before + header})
                continue
            body = chain(first_rows[header + 1 :], rows)
            for table, first, last in row_groups(first_rows[header], body, separator):
                yield Part(above + table, {"row_start": rows_before + first, "row_end": rows_before + last})
                above = ""  # it is written once
            rows_before += last
    except csv.Error as error:
        raise Unreadable(f"its rows cannot be separated ({error})", "Save it as UTF-8 CSV") from error


def _numbered_by_table(rows: Iterable[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the number of their table; two blank rows end it, unless it goes on."""
    table = blank_rows = widest_gap = 0  # the blank rows just above; the most above a row that is held back
    first_rows, held_back = list[list[str]](), list[list[str]]()  # of the table; notes or titles of the next
    for is_filled, run in groupby(rows, key=lambda row: any(map(str.strip, row))):
        remaining = iter(run)
        next_rows = list(islice(remaining, TOP_ROWS))
        if not is_filled:
            blank_rows = len(next_rows)
            continue
        widest_gap = max(widest_gap, blank_rows)
        held_back += next_rows
        if are_notes(next_rows):
            continue
        is_table = any(sum(bool(cell.strip()) for cell in row) > 1 for row in first_rows)  # not titles alone
        if widest_gap > 1 and is_table and not continues_table(first_rows, held_back):
            table, first_rows = table + 1, []
        first_rows = [*first_rows, *held_back][:TOP_ROWS]
        yield from zip(repeat(table), chain(held_back, remaining))
        held_back, widest_gap = [], 0
    if held_back and first_rows:
        # below a single blank row, only what looks like a note beside the table's cells is one
        are_apart = widest_gap > 1 or are_notes(held_back, first_rows)
        table += are_apart and not continues_table(first_rows, held_back)
    yield from zip(repeat(table), held_back)


def _csv_rows(text: str, delimiter: str, *, lines_before: int) -> Iterator[list[str]]:
    """Yield the rows of a CSV text, of which some lines were taken; misplaced quotation marks are noted."""
    lines, misfits = io.StringIO(text), 0
    reader = partial(csv.reader, delimiter=delimiter, skipinitialspace=True)
    rows = reader(lines, strict=True)
    while True:
        start, line_number = lines.tell(), lines_before + rows.line_num + 1  # of the next row
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            lines.seek(start)
            line = lines.readline()
            # with an odd number of marks, these are taken as characters like any other
            row = next(reader([line], quotechar=None if line.count('"') % 2 else '"'))
            write_note(f"line {line_number}: a quotation mark does not fit; the line is read as a row")
            lines_before, misfits = line_number, misfits + 1
            rows = reader(lines, strict=True)  # begins again behind this line
        yield row
        if misfits == _MAX_MISFITS:  # each cost a search for the end of a quotation through all that follows
            write_note(f"lines after {line_number}: each is read as a row")
            yield from (next(reader([line])) for line in lines)
            return


def _find_delimiter(text: str) -> str:
    """Return the separator that cuts most of the first lines into equally many cells; the comma loses a tie."""
    lines = [line for line in text[:20_000].split("\n")[:20] if line.strip()]

    def score(candidate: str) -> int:
        counts = [len(row) for row in csv.reader(lines, delimiter=candidate, skipinitialspace=True)]
        return max((counts.count(count) for count in counts if count > 1), default=0)

    return max("\t;|,", key=score)


def read_json(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each record of a list (also in ``{"data": [...]}``), or one part for anything else."""
    value = _load_json(decode(data))
    name, records = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", value)
    if isinstance(records, list) and records and all(isinstance(item, dict | list) for item in records):
        for number, record in enumerate(records, 1):
            part = _record_part(record, number)
            part.metadata["heading"] = name
            yield part
    else:
        yield _record_part(value, None)


def read_jsonl(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each line, with its number as ``record``; blank lines are counted, but left out."""
    for number, line in enumerate(decode(data).split("\n"), 1):
        if line.strip():
            with leave_out(f"line {number}"):
                yield _record_part(_load_json(line), number)


def _load_json(text: str) -> Any:
    """Parse a JSON text, with numbers as they are written; raises `Unreadable`."""
    try:
        return json.loads(
            text, object_pairs_hook=_json_object, parse_float=str, parse_int=str, parse_constant=str
        )
    except RecursionError as error:
        raise Unreadable("it is nested too deeply", "Flatten it") from error
    except ValueError as error:
        raise Unreadable(f"it is not valid JSON ({error})", "Correct it at that place") from error


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of a JSON object's pairs; a key that comes more than once gets a list of its values, and a note."""
    value = dict(pairs)
    if len(value) < len(pairs):
        values = defaultdict[str, list[Any]](list)
        for key, item in pairs:
            values[key].append(item)
        repeated = {key: items for key, items in values.items() if len(items) > 1}
        write_note(f"given more than once in one object, all values are kept: {', '.join(repeated)}"[:300])
        value |= repeated
    return value


def _record_part(value: Any, number: int | None) -> Part:
    """Make the part of a record: its value as lines, with its number and title in the metadata."""
    metadata: dict[str, Scalar] = {} if number is None else {"record": number}
    titles = [value.get(key) for key in _TITLE_KEYS] if isinstance(value, dict) else []
    title = next((title for title in titles if isinstance(title, str)), "")
    metadata["title"] = " ".join(title.split())[:300]
    return Part("\n".join(_value_lines(value, "")), metadata)


def _value_lines(value: Any, indent: str) -> Iterator[str]:
    """Write a JSON value as indented lines, ``key: value`` for objects and ``- value`` for lists."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _item_lines(f"{indent}{key}:", item, indent, on_mark=False)
    elif isinstance(value, list):
        for item in value:
            yield from _item_lines(f"{indent}-", item, indent, on_mark=True)
    else:
        yield indent + _scalar_text(value)


def _item_lines(mark: str, item: Any, indent: str, *, on_mark: bool) -> Iterator[str]:
    """Yield an item's lines with its mark; those of a nested value begin on the mark's line only with ``on_mark``."""
    if not isinstance(item, dict | list) or not item:
        yield f"{mark} {_scalar_text(item)}"
    elif isinstance(item, list) and not any(isinstance(inner, dict | list) for inner in item):
        yield f"{mark} {', '.join(map(_scalar_text, item))}"
    else:
        nested = _value_lines(item, indent + "  ")
        yield f"{mark} {next(nested).lstrip()}" if on_mark else mark
        yield from nested


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or value == {} else json.dumps(value, ensure_ascii=False)
