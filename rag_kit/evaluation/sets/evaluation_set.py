"""A named, ordered, unchangeable set of examples, and the corpus that their gold ids speak of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets import parting

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.evaluation.dataset import RetrievalDataset

ColumnNames = Mapping[str, "str | Sequence[str] | None"]


class EvaluationSet(Sequence[Example]):
    """Questions to evaluate with, in order, each with what is known of its right answer.

    Args:
        name: Its name, for tables and manifests.
        examples: The examples; their ids must be unique.
        corpus: The passages or documents that the ids in ``relevant`` and ``spans`` belong to: `Passage`, LangChain
            documents, or texts. ``None`` where they are elsewhere.

    Raises:
        InvalidInputError: If an id comes twice, or something is no example and no passage.

    Example:
        >>> tides = EvaluationSet("tides", [Example("q1", "What moves the sea?", tags={"language": "en"}),
        ...                                 Example("q2", "什么引起潮汐？", tags={"language": "zh"})])
        >>> len(tides), tides["q2"].question, [each.id for each in tides.filter(language="en")]
        (2, '什么引起潮汐？', ['q1'])
    """

    def __init__(
        self,
        name: str,
        examples: Iterable[Example],
        *,
        corpus: Iterable[Passage | Document | str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInputError(f"name is {name!r:.80}; give a text that is not blank")
        self.name = name
        self.examples: tuple[Example, ...] = tuple(examples)
        self._places: dict[str, int] = {}
        for place, example in enumerate(self.examples):
            if not isinstance(example, Example):
                raise InvalidInputError(
                    f"examples[{place}] is a {type(example).__name__}; give objects of the class Example"
                )
            if self._places.setdefault(example.id, place) != place:
                raise InvalidInputError(
                    f"the id {example.id!r:.80} is that of examples[{self._places[example.id]}] and of "
                    f"examples[{place}]; ids must be unique"
                )
        self.corpus: tuple[Passage, ...] | None = None if corpus is None else _corpus(corpus)

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @overload
    def __getitem__(self, key: int | str) -> Example: ...
    @overload
    def __getitem__(self, key: slice) -> EvaluationSet: ...
    def __getitem__(self, key: int | str | slice) -> Example | EvaluationSet:
        """The example of an id or a place; a slice is a set."""
        if isinstance(key, slice):
            return self._of(self.examples[key])
        if isinstance(key, str):
            if key not in self._places:
                raise KeyError(f"{self.name!r} has no example with the id {key!r:.80}")
            return self.examples[self._places[key]]
        return self.examples[key]

    def __contains__(self, value: object) -> bool:
        return value in self._places if isinstance(value, str) else value in self.examples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        return (self.name, self.examples, self.corpus) == (other.name, other.examples, other.corpus)

    __hash__ = None  # type: ignore[assignment]

    # -- parts of it ------------------------------------------------------------------------------------------------

    def filter(self, wanted: Callable[[Example], object] | None = None, **tags: str) -> EvaluationSet:
        """The examples that a function says yes to, and that have these tags."""
        return self._of(
            example
            for example in self.examples
            if all(example.tags.get(name) == value for name, value in tags.items())
            and (wanted is None or wanted(example))
        )

    def slices(self, by: str | Callable[[Example], object]) -> dict[str, EvaluationSet]:
        """The set in parts: one for each value of a tag, or of what a function says; ``""`` where there is none."""
        groups: dict[str, list[Example]] = {}
        for example in self.examples:
            value = example.tags.get(by, "") if isinstance(by, str) else by(example)
            groups.setdefault("" if value is None else str(value), []).append(example)
        return {value: self._of(found) for value, found in groups.items()}

    def sample(self, n: int, seed: int = 0) -> EvaluationSet:
        """So many examples, drawn without replacement, in the order of the set.

        The draw goes by the ids: the same ids and seed give the same examples on every machine, in every order.

        Raises:
            InvalidInputError: If there are not so many.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= len(self):
            raise InvalidInputError(
                f"n is {n!r}; {self.name!r} has {len(self)} examples: give 0 to {len(self)}"
            )
        drawn = set(sorted(self._places, key=lambda key: parting.rank(key, seed))[:n])
        return self._of(example for example in self.examples if example.id in drawn)

    def split(
        self, share: float, seed: int = 0, *, by: str | Callable[[Example], object] | None = None
    ) -> tuple[EvaluationSet, EvaluationSet]:
        """Two parts, the first with the given share of the examples; the same ids and seed give the same parts.

        Args:
            share: More than 0, less than 1.
            seed: Of the draw.
            by: Tag or function; examples with the same value stay together, so that no question of a document is
                in one part while its sister is in the other. The share then holds as nearly as groups allow.

        Raises:
            InvalidInputError: If the share is out of range or a part would be empty.
        """
        first = parting.part(self.examples, share, seed, by)
        return (
            self._of(example for example in self.examples if example.id in first),
            self._of(example for example in self.examples if example.id not in first),
        )

    def fingerprint(self) -> str:
        """SHA-256 of all examples and the corpus, whatever their order; the name is no part of it."""
        lines = [json.dumps(example.to_json(), sort_keys=True) for example in self.examples]
        lines += [json.dumps(["passage", p.id, p.text]) for p in self.corpus or ()]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def documents(self) -> list[Document]:
        """The corpus as LangChain documents, to index.

        Raises:
            InvalidInputError: If the set has no corpus.
        """
        from langchain_core.documents import Document

        if self.corpus is None:
            raise InvalidInputError(f"the set {self.name!r} has no corpus; give one with corpus=")
        return [
            Document(id=p.id, page_content=p.text, metadata={"corpus_id": p.id, **p.metadata})
            for p in self.corpus
        ]

    # -- from files, and to one ---------------------------------------------------------------------------------------

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

        return load(Path(path), settings)

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

        return save(self, Path(path))

    # -- shown --------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        corpus = "" if self.corpus is None else f", {len(self.corpus)} passages"
        return f"EvaluationSet({self.name!r}, {len(self)} examples{corpus})"

    def _repr_html_(self) -> str:
        from rag_kit.evaluation.sets.showing import to_html

        return to_html(self)

    def _of(self, examples: Iterable[Example]) -> EvaluationSet:
        part = EvaluationSet(self.name, examples)
        part.corpus = self.corpus
        return part


def _corpus(corpus: Iterable[Passage | Document | str]) -> tuple[Passage, ...]:
    from langchain_core.documents import Document

    found: dict[str, Passage] = {}
    for place, item in enumerate(corpus):
        document = Document(page_content=item) if isinstance(item, str) else item
        if not isinstance(document, (Passage, Document)):
            raise InvalidInputError(
                f"corpus[{place}] is a {type(item).__name__}; give passages, documents or texts"
            )
        passage = document if isinstance(document, Passage) else Passage.of(document)
        passage = Passage(passage.id, passage.text, to_plain(passage.metadata))  # provenance is of a search
        known = found.setdefault(passage.id, passage)
        if known.text != passage.text:
            raise InvalidInputError(
                f"two passages of the corpus have the id {passage.id!r:.80} and different texts; "
                "ids must be unique"
            )
    return tuple(found.values())
