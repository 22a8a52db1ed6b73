"""From files and frames to a set, and from a set to a file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path, check_target, write_jsonl
from rag_kit.evaluation._lines import find_file
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets import files
from rag_kit.evaluation.sets.columns import Columns

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example

ColumnNames = Mapping[str, "str | Sequence[str] | None"]


class Stored:
    """What `EvaluationSet` can be read from and written to."""

    name: str
    examples: tuple[Example, ...]
    corpus: tuple[Passage, ...] | None

    def __init__(
        self, name: str, examples: Iterable[Example], *, corpus: Iterable[Any] | None = None
    ) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, path: Path | str, **settings: Any) -> Self:
        """Read a set; its form is known by the name of the file or by what is in the folder.

        Args:
            path: A file (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``; the first four also ``.gz``), a BEIR
                folder, or a folder of a Hugging Face data set.
            settings: What the loader of that form takes, such as ``columns``.

        Raises:
            InvalidInputError: If it is none of these, or not right; the message names file and line.
        """
        path = as_path(path, "path")
        ending = path.name.removesuffix(".gz").lower()
        if path.is_dir():
            beir = find_file(path, "queries.jsonl", "queries.jsonl.gz")
            loader: Any = cls.from_beir if beir else cls.from_huggingface
        elif ending.endswith(files.JSON):
            loader = cls.from_jsonl
        else:
            loader = cls.from_csv if ending.endswith(files.TABLES) else cls._from_file
        allowed = list(inspect.signature(loader).parameters)[1:]
        if unknown := [name for name in settings if name not in allowed]:
            raise InvalidInputError(
                f"{path.name!r} is read without a setting {unknown[0]!r:.80}; allowed are {', '.join(allowed)}"
            )
        return cast("Self", loader(path, **settings))

    @classmethod
    def _from_file(cls, path: Path, *, columns: ColumnNames | None = None, name: str | None = None) -> Self:
        records, _ = files.records_of(path)
        return cls._made(name, path, Columns(columns, path.name), records)

    @classmethod
    def from_jsonl(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
    ) -> Self:
        """Read JSON Lines (``.gz`` too), or one JSON list where the name ends in ``.json``.

        Args:
            path: The file: of ``save``, of Ragas (``user_input``, ``reference``), or with names of your own.
            columns: Field of `Example` -> name in the file, for what has another name than usual; ``None`` as a name
                leaves a field out. Names that are no field become metadata.
            name: The set's name; the file's where it is not given.
            encoding: The file's encoding.

        Raises:
            InvalidInputError: If a line is no example; the message names file and line.
        """
        path = files.existing(path)
        return cls._made(name, path, Columns(columns, path.name), files.json_records(path, encoding))

    @classmethod
    def from_csv(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
    ) -> Self:
        """Read CSV with a header line. A cell may spell out a list: ``["a", "b"]``, as JSON or as Python prints it.

        Args:
            path: The file.
            columns: As in `from_jsonl`.
            name: As in `from_jsonl`.
            encoding: The file's encoding; spreadsheets in China often write ``"gb18030"``.
            delimiter: Between cells; ``None``: tab for ``.tsv``, else what the header line has most of ``, ; | tab``.

        Raises:
            InvalidInputError: If a row is no example; the message names file and line.
        """
        path = files.existing(path)
        records = files.csv_records(path, encoding, delimiter)
        return cls._made(name, path, Columns(columns, path.name, spelled=True), records)

    @classmethod
    def from_huggingface(
        cls,
        source: Path | str | Any,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        split: str | None = None,
    ) -> Self:
        """Read a Hugging Face data set from local files, or one that is loaded already. No network, no code of it.

        Args:
            source: A ``datasets.Dataset`` or ``DatasetDict``; the folder of ``save_to_disk``; or a folder with
                Parquet, JSON Lines or CSV files, as it is downloaded from the hub.
            columns: As in `from_jsonl`. SQuAD's columns are known, with ``answers`` as ``{"text", "answer_start"}``.
            name: The set's name; the folder's where it is not given.
            split: Which split, where there are several.

        Raises:
            InvalidInputError: If there is no such split, or a row is no example.
            MissingExtraError: If the folder is one of ``save_to_disk`` and ``datasets`` is not installed.
        """
        from rag_kit.evaluation.sets.huggingface import records_of

        found, records, spelled = records_of(source, split)
        label = name or found or "dataset"
        return cls._made(label, None, Columns(columns, label, spelled=spelled), records)

    @classmethod
    def from_beir(cls, folder: Path | str, *, split: str = "test") -> Self:
        """Read a folder in BEIR's layout; as `rag_kit.evaluation.load_dataset`."""
        from rag_kit.evaluation.sets.beir import read_beir

        name, examples, corpus = read_beir(folder, split)
        return cls(name, examples, corpus=corpus)

    @classmethod
    def from_pandas(cls, frame: Any, *, columns: ColumnNames | None = None, name: str = "frame") -> Self:
        """Read a pandas frame, one example a row; empty cells count as missing.

        Args:
            frame: The frame.
            columns: As in `from_jsonl`.
            name: The set's name.

        Raises:
            InvalidInputError: If a row is no example; the message names the row.
        """
        records = files.frame_records(frame)
        return cls._made(name, None, Columns(columns, "the frame", spelled=True), records)

    @classmethod
    def from_feedback(
        cls,
        path: Path | str,
        *,
        name: str | None = None,
        encoding: str = "utf-8",
        keep_unrated: bool = False,
    ) -> Self:
        """Read an export of runs with the thumbs that users gave them.

        The question is in the run's inputs. An answer with a thumb up becomes the reference, one with a thumb down
        does not: it is kept under ``metadata["rejected"]``. What a user wrote as the right answer counts more than
        any thumb. Runs that asked the same are one example; where thumbs on the same answer disagree, there is no
        reference. The tag ``feedback`` is ``up``, ``down``, ``mixed`` or ``none``.

        Args:
            path: JSON Lines, JSON or CSV; rows with ``inputs``, ``outputs`` and a thumb: ``score``, ``thumbs``,
                ``rating`` or ``feedback`` (up or down, 1 or 0 or -1, true or false), or LangSmith's
                ``feedback_stats``.
            name: The set's name; the file's where it is not given.
            encoding: The file's encoding.
            keep_unrated: Keep runs without a thumb, as examples without a reference.

        Raises:
            InvalidInputError: If a row holds no question or a thumb that is none; the message names file and line.
        """
        from rag_kit.evaluation.sets.feedback import examples_of

        path = files.existing(path)
        examples = examples_of(path, encoding, keep_unrated)
        return cls(name or files.stem(path), map(_whole, examples))

    def save(self, path: Path | str) -> Path:
        """Write the set as JSON Lines, as a whole or not at all; `load` gives back an equal one.

        One example a line. Below them the corpus, one passage a line, and above them the set's name where it is not
        the file's: a set without both is plain JSON Lines for every other program.

        Raises:
            InvalidInputError: If the file could not be written, its name has another ending, or a text holds half a
                character.
        """
        path = as_path(path, "path")
        if path.suffix != ".jsonl":
            raise InvalidInputError(f"the name is {path.name!r}; give one that ends in .jsonl")
        check_target(path)
        header: dict[str, Any] = {} if self.name == files.stem(path) else {"name": self.name}
        if self.corpus is not None:
            header["corpus"] = len(self.corpus)
        rows = [{"evaluation_set": header}] if header else []
        rows += [example.to_json() for example in self.examples]
        for passage in self.corpus or ():
            metadata = {"metadata": to_plain(passage.metadata)} if passage.metadata else {}
            rows.append({"passage": {"id": passage.id, "text": passage.text, **metadata}})
        try:
            write_jsonl(path, rows)
        except UnicodeEncodeError as error:
            raise InvalidInputError(
                f"a text of the set holds half a character (a lone surrogate, {error.object[error.start]!a}); "
                "write the whole character"
            ) from error
        return path

    @classmethod
    def _made(
        cls, name: str | None, path: Path | None, columns: Columns, records: Iterable[files.Record]
    ) -> Self:
        """A set of records; what `save` writes beside examples is its name and its corpus."""
        header: dict[str, Any] = {}
        passages: list[Passage] = []
        examples = [_whole(each) for each in columns.examples(_own_lines(records, header, passages))]
        label = name or header.get("name") or (files.stem(path) if path else "")
        return cls(label, examples, corpus=passages if passages or "corpus" in header else None)


def _whole(example: Example) -> Example:
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
    return example


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
