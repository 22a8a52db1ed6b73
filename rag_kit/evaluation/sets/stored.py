"""The ways from files and frames to a set, and to a file: each is one call to the module that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_kit.evaluation._files import as_path

if TYPE_CHECKING:
    from rag_kit.evaluation.dataset import RetrievalDataset
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet

ColumnNames = Mapping[str, "str | Sequence[str] | None"]


class Stored:
    """What `EvaluationSet` can be read from and written to."""

    @classmethod
    def load(cls, path: Path | str, **settings: Any) -> EvaluationSet:
        """Read a set; its form is known by the name of the file or by what is in the folder.

        Args:
            path: A file (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``; the first four also ``.gz``), a BEIR
                folder, or a folder of a Hugging Face data set.
            settings: What the loader of that form takes, such as ``columns``.

        Raises:
            InvalidInputError: If it is none of these, or not right; the message names file and line.
        """
        from rag_kit.evaluation.sets.loading import load

        return load(as_path(path, "path"), settings)

    @classmethod
    def from_jsonl(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
    ) -> EvaluationSet:
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
        from rag_kit.evaluation.sets.loading import from_jsonl

        return from_jsonl(path, columns, name, encoding)

    @classmethod
    def from_csv(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
    ) -> EvaluationSet:
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
        from rag_kit.evaluation.sets.loading import from_csv

        return from_csv(path, columns, name, encoding, delimiter)

    @classmethod
    def from_huggingface(
        cls,
        source: Path | str | Any,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        split: str | None = None,
    ) -> EvaluationSet:
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
        from rag_kit.evaluation.sets.huggingface import from_huggingface

        return from_huggingface(source, columns, name, split)

    @classmethod
    def from_beir(cls, folder: Path | str, *, split: str = "test", contexts: bool = True) -> EvaluationSet:
        """Read a folder in BEIR's layout, with ``qa.jsonl`` where there is one (see `load_dataset`).

        Args:
            folder: The folder.
            split: Which file of ``qrels/``.
            contexts: Whether the texts of relevant documents become ``reference_contexts``.

        Raises:
            InvalidInputError: As `load_dataset`.
        """
        from rag_kit.evaluation.dataset import load_dataset

        return cls.from_retrieval_dataset(load_dataset(folder, split=split), contexts=contexts)

    @classmethod
    def from_retrieval_dataset(cls, dataset: RetrievalDataset, *, contexts: bool = True) -> EvaluationSet:
        """The queries of a retrieval data set, with gold answers, spans, and the corpus."""
        from rag_kit.evaluation.sets.retrieval import from_retrieval_dataset

        return from_retrieval_dataset(dataset, contexts)

    @classmethod
    def from_pandas(
        cls, frame: Any, *, columns: ColumnNames | None = None, name: str = "frame"
    ) -> EvaluationSet:
        """Read a pandas frame, one example a row; empty cells count as missing.

        Args:
            frame: The frame.
            columns: As in `from_jsonl`.
            name: The set's name.

        Raises:
            InvalidInputError: If a row is no example; the message names the row.
        """
        from rag_kit.evaluation.sets.loading import from_pandas

        return from_pandas(frame, columns, name)

    @classmethod
    def from_feedback(
        cls,
        path: Path | str,
        *,
        name: str | None = None,
        encoding: str = "utf-8",
        keep_unrated: bool = False,
    ) -> EvaluationSet:
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
        from rag_kit.evaluation.sets.feedback import from_feedback

        return from_feedback(path, name, encoding, keep_unrated)

    def save(self, path: Path | str) -> Path:
        """Write the set as JSON Lines, as a whole or not at all; `load` gives back an equal one.

        One example a line. Below them the corpus, one passage a line, and above them the set's name where it is not
        the file's: a set without both is plain JSON Lines for every other program.

        Raises:
            InvalidInputError: If the file could not be written, its name has another ending, or a text holds half a
                character.
        """
        from rag_kit.evaluation.sets.saving import save

        return save(cast("EvaluationSet", self), as_path(path, "path"))
