"""The loaders of files and frames, and which one a path is for."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._lines import find_file, raw_lines
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets import files
from rag_kit.evaluation.sets.columns import Columns
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet

Named = Mapping[str, "str | Sequence[str] | None"] | None
_TABLES = (".csv", ".tsv", ".tab")


def load(path: Path, settings: dict[str, Any]) -> EvaluationSet:
    """See `EvaluationSet.load`."""
    loader = _loader(path)
    allowed = [
        name for name in inspect.signature(loader).parameters if name not in ("path", "folder", "source")
    ]
    if unknown := [name for name in settings if name not in allowed]:
        raise InvalidInputError(
            f"{path.name!r} is read without a setting {unknown[0]!r:.80}; allowed are {', '.join(allowed)}"
        )
    return loader(path, **settings)


def _loader(path: Path) -> Callable[..., EvaluationSet]:
    """What reads a path of this form."""
    if path.is_dir():
        if find_file(path, "queries.jsonl", "queries.jsonl.gz"):
            return EvaluationSet.from_beir
        return EvaluationSet.from_huggingface
    name = files.existing(path).name.removesuffix(".gz").lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return EvaluationSet.from_jsonl
    if name.endswith(_TABLES):
        return EvaluationSet.from_csv
    if name.endswith(".parquet"):
        return from_parquet
    raise InvalidInputError(
        f"{path.name!r} has an ending that says nothing of its form; allowed are .jsonl, .json, .csv, .tsv and "
        ".parquet, a BEIR folder, or a folder of a Hugging Face data set"
    )


def from_jsonl(path: Path | str, columns: Named, name: str | None, encoding: str) -> EvaluationSet:
    """See `EvaluationSet.from_jsonl`."""
    path = files.existing(path)
    plain = path.name.removesuffix(".gz").lower().endswith(".json")
    if plain and not looks_like_lines(path, encoding):
        return made(path, Columns(columns, path.name), files.json_records(path, encoding), name)
    header: dict[str, Any] = {}
    passages: list[Passage] = []
    columns_ = Columns(columns, path.name)
    examples = list(columns_.examples(_own_lines(files.jsonl_records(path, encoding), header, passages)))
    return complete(
        name or header.get("name") or files.stem(path),
        examples,
        passages if passages or "corpus" in header else None,
    )


def from_csv(
    path: Path | str, columns: Named, name: str | None, encoding: str, delimiter: str | None
) -> EvaluationSet:
    """See `EvaluationSet.from_csv`."""
    path = files.existing(path)
    return made(
        path, Columns(columns, path.name, spelled=True), files.csv_records(path, encoding, delimiter), name
    )


def from_parquet(path: Path, columns: Named = None, name: str | None = None) -> EvaluationSet:
    """A Parquet file as a set."""
    return made(path, Columns(columns, path.name), files.parquet_records(files.existing(path)), name)


def from_pandas(frame: Any, columns: Named, name: str) -> EvaluationSet:
    """See `EvaluationSet.from_pandas`."""
    if not hasattr(frame, "to_dict") or not hasattr(frame, "columns"):
        raise InvalidInputError(f"the frame is a {type(frame).__name__}; give a pandas DataFrame")
    names = [str(each) for each in frame.columns]
    double = next((each for each in names if names.count(each) > 1), None)
    if double is not None:
        raise InvalidInputError(f"the frame has the column {double!r:.80} twice; rename one")

    def records() -> Iterator[files.Record]:
        for number, (index, row) in enumerate(
            zip(frame.index, frame.itertuples(index=False, name=None), strict=True)
        ):
            files.check_count("the frame", number)
            yield f"row {number} (index {index!r:.40})", dict(zip(names, row, strict=True))

    return complete(name, list(Columns(columns, "the frame", spelled=True).examples(records())), None)


def made(path: Path, columns: Columns, records: Iterable[files.Record], name: str | None) -> EvaluationSet:
    """A set of the records of a file."""
    return complete(name or files.stem(path), list(columns.examples(records)), None)


def complete(name: str, examples: list[Example], corpus: list[Passage] | None) -> EvaluationSet:
    """A set of examples, each seen to be one that can be saved."""
    for example in examples:
        whole(example)
    return EvaluationSet(name, examples, corpus=corpus)


def whole(example: Example) -> None:
    """Refuse halves of characters, which no file in UTF-8 can hold.

    Raises:
        InvalidInputError: If there is one.
    """
    try:
        json.dumps(example.to_json(), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"the example {example.id!a:.80} holds half a character (a lone surrogate, {error.object[error.start]!a}); "
            "write the whole character"
        ) from error


def _own_lines(
    records: Iterable[files.Record], header: dict[str, Any], passages: list[Passage]
) -> Iterator[files.Record]:
    """Set aside what `save` writes beside the examples: the name, and the corpus."""
    for where, record in records:
        if set(record) == {"evaluation_set"} and isinstance(record["evaluation_set"], Mapping):
            header.update(record["evaluation_set"])
        elif set(record) == {"passage"} and isinstance(record["passage"], Mapping):
            fields = record["passage"]
            if not isinstance(fields.get("id"), str) or not isinstance(fields.get("text"), str):
                raise InvalidInputError(f"{where}: a passage needs id and text, both texts")
            passages.append(Passage(fields["id"], fields["text"], dict(fields.get("metadata") or {})))
        else:
            yield where, record


def looks_like_lines(path: Path, encoding: str) -> bool:
    """Whether a ``.json`` file holds an object a line, as some exports do."""
    lines = (
        line.strip()
        for _, line in files.hinted(path, raw_lines(path, encoding=encoding, most=files.MAX_FILE))
        if line.strip()
    )
    first, second = next(lines, ""), next(lines, "")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (bool(second) or files.only_list(value) is None)
