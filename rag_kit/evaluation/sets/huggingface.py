"""Hugging Face data sets from local files or from memory. Nothing is fetched, and no script of a data set is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation._lines import first_few
from rag_kit.evaluation.sets import files

_ENDINGS = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".csv", ".csv.gz", ".tsv")
_SAVED = ("dataset_dict.json", "state.json")
_SPLIT = re.compile(r"^([A-Za-z][A-Za-z0-9_.]*?)(?:[-_.]\d{1,6}(?:-of-\d{1,6})?(?:-[0-9a-f]{6,})?)?$")
_MAX_FILES = 1000


def records_of(source: Any, split: str | None) -> tuple[str | None, Iterator[files.Record], bool]:
    """The name and the records of a data set, and whether lists may be spelled out in its cells.

    Raises:
        InvalidInputError: If it is none, or there is no such split.
    """
    name = None
    if isinstance(source, (str, Path)):
        folder = as_path(source, "source")
        if not folder.is_dir():
            raise InvalidInputError(
                f"{str(folder)!r} is no folder; download the data set first, or give a datasets.Dataset"
            )
        name = folder.resolve().name
        if not any((folder / each).is_file() for each in _SAVED):
            parts = [files.records_of(path) for path in _files(folder, split)]
            return name, chain.from_iterable(records for records, _ in parts), any(s for _, s in parts)
        source = _from_disk(folder)
    if isinstance(source, Mapping):
        source = source[_chosen(list(source), split)]
    if not hasattr(source, "column_names") or not hasattr(source, "__iter__"):
        raise InvalidInputError(
            f"the source is a {type(source).__name__}; give a folder, a datasets.Dataset or a DatasetDict"
        )
    name = name or getattr(getattr(source, "info", None), "dataset_name", None)
    return name, _rows(source, name or "dataset"), False


def _chosen(splits: Sequence[str], split: str | None) -> str:
    """The split that is named, else the only one.

    Raises:
        InvalidInputError: If it is not there, or not said which of several.
    """
    if split is None and len(splits) == 1:
        return splits[0]
    if split is None or split not in splits:
        raise InvalidInputError(
            f"split is {split!r}; the data set has {first_few(list(splits)) or 'none'}: name one with split="
        )
    return split


def _rows(dataset: Any, label: str) -> Iterator[files.Record]:
    names = {
        column: feature.names
        for column, feature in (getattr(dataset, "features", None) or {}).items()
        if type(feature).__name__ == "ClassLabel"
    }
    for number, row in enumerate(dataset, start=1):
        files.check_count(label, number)
        record = dict(row)
        for column, labels in names.items():
            value = record.get(column)
            if isinstance(value, int) and 0 <= value < len(labels):
                record[column] = labels[value]
        yield f"{label}: row {number}", record


def _from_disk(folder: Path) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("eval", "reading a data set that save_to_disk wrote") from error
    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # its own classes and pyarrow's: the folder is not what its files say
        raise InvalidInputError(
            f"{folder.name!r} is no data set that save_to_disk wrote ({type(error).__name__}: {error})"
        ) from error


def _files(folder: Path, split: str | None) -> list[Path]:
    """Files as on the hub: ``data/train-00000-of-00002.parquet``, ``test.jsonl``, ``validation/0.csv``."""
    found: dict[str, list[Path]] = {}
    left: dict[str, list[Path]] = {}
    root = folder.resolve()
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= 100 * _MAX_FILES:
            raise InvalidInputError(f"{folder.name!r} holds too many files for one data set")
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        own = path.name.endswith(_ENDINGS) and path.name not in ("dataset_infos.json", "dataset_info.json")
        if hidden or not own or not path.is_file():
            continue
        match = _SPLIT.match(files.stem(path))
        inner = path.parent.name if path.parent not in (folder, folder / "data") else None
        place = inner or (match[1] if match else files.stem(path))
        within = path.resolve().is_relative_to(root)
        (found if within else left).setdefault(place, []).append(path)
    if not found and not left:
        raise InvalidInputError(
            f"{folder.name!r} holds no data set: no {', '.join(_ENDINGS)} file, nothing of save_to_disk, "
            "no queries.jsonl of a BEIR folder"
        )
    wanted = _chosen(list(found), split) if found else next(iter(left))
    if wanted in left:
        raise InvalidInputError(
            f"{left[wanted][0].relative_to(folder).as_posix()!r} in {folder.name!r} is a link that leaves the "
            "folder; copy the data set with its files (hf download --local-dir does), or remove the link"
        )
    parts = found[wanted]
    if len(parts) > _MAX_FILES:
        raise InvalidInputError(f"the split has {len(parts)} files; at most {_MAX_FILES} are allowed")
    return parts
