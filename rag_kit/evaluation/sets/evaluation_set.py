"""A named, ordered, unchangeable set of examples, and the corpus that their gold ids speak of."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rag_kit.documents.plain import to_plain
from rag_kit.documents.tables import Table
from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation import _files as files
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.columns import read_examples

if TYPE_CHECKING:
    from langchain_core.documents import Document

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
        for given, allowed in ((examples, "examples"), (() if corpus is None else corpus, "passages")):
            if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
                raise InvalidInputError(f"a {type(given).__name__} was given; give a list of {allowed}")
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
        if wanted is not None and not callable(wanted):
            raise InvalidInputError(
                f"wanted is {wanted!r:.80}; give a function of an example, or tags by name"
            )
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
        drawn = set(sorted(self._places, key=lambda key: _rank(key, seed))[:n])
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
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise InvalidInputError(f"share is {share!r}; give a number between 0 and 1, such as 0.7")
        groups = self.slices(by or (lambda example: example.id))
        first: set[str] = set()
        for value in sorted(groups, key=lambda value: _rank(value, seed)):
            left = round(share * len(self)) - len(first)
            if abs(left - len(groups[value])) < abs(left):
                first.update(example.id for example in groups[value])
        if not first or len(first) == len(self):
            raise InvalidInputError(
                f"a share of {share} of {len(self)} examples in {len(groups)} groups leaves one part empty; "
                "give more examples or another share"
            )
        return self.filter(lambda example: example.id in first), self.filter(
            lambda example: example.id not in first
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

    # -- read and written ---------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
        split: str | None = None,
    ) -> EvaluationSet:
        """Read a set; its form is known by the name of the file or by what is in the folder. Nothing is fetched.

        Args:
            path: A file (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``, ``.xlsx``; the first four also
                ``.gz``), a BEIR folder, or a folder of a Hugging Face data set.
            columns: Field of `Example` -> name in the file, for what has another name than usual; ``None`` as a name
                leaves a field out. ``"tags"`` may be a list of columns. Names that are no field become metadata.
            name: The set's name; the file's where it is not given.
            encoding: The file's encoding; spreadsheets in China often write ``"gb18030"``.
            split: Which split of a folder.

        Raises:
            InvalidInputError: If it is none of these, or not right; the message names file and line, or the row.
        """
        path = files.as_path(path, "path")
        if not path.is_dir():
            if split is not None:
                raise InvalidInputError(f"{path.name!r} is read without a split; split is for a folder")
            return cls._made(files.read_records(files.existing_file(path), encoding), columns, name, path)
        beir = files.find_file(path, "queries.jsonl", "queries.jsonl.gz")
        if encoding != "utf-8" or (beir and (columns or name)):
            raise InvalidInputError(
                f"{path.name!r} is a folder, read without encoding, and one of BEIR's without columns and name"
            )
        if beir:
            return cls.from_beir(path, split=split or "test")
        return cls.from_huggingface(path, columns=columns, name=name, split=split)

    @classmethod
    def from_csv(
        cls,
        path: Path | str,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        encoding: str = "utf-8",
    ) -> EvaluationSet:
        """Read a table with a header line, whatever the file is called; arguments and errors as in `load`.

        Cells are parted by what the header line has most of: comma, semicolon, tab or ``|``. A cell may spell out a
        list: ``["a", "b"]``, as JSON or as Python prints it.
        """
        path = files.existing_file(path)
        return cls._made(files.read_table(path, encoding), columns, name, path)

    @classmethod
    def from_pandas(
        cls, frame: Any, *, columns: ColumnNames | None = None, name: str = "frame"
    ) -> EvaluationSet:
        """Read a pandas frame, one example a row; empty cells count as missing. ``columns`` as in `load`."""
        return cls._made(files.frame_records(frame, "the frame"), columns, name, Path("the frame"))

    @classmethod
    def from_huggingface(
        cls,
        source: Path | str | Any,
        *,
        columns: ColumnNames | None = None,
        name: str | None = None,
        split: str | None = None,
    ) -> EvaluationSet:
        """Read a Hugging Face data set from local files, or one that is loaded already; no network.

        Args:
            source: A ``datasets.Dataset`` or ``DatasetDict``; the folder of ``save_to_disk``; or a folder with
                Parquet, JSON Lines or CSV files, as it is downloaded from the hub.
            columns: As in `load`. SQuAD's columns are known.
            name: The set's name; the folder's where it is not given.
            split: Which split, where there are several.

        Raises:
            InvalidInputError: If it is no data set, there is no such split, or a row is no example.
            MissingExtraError: If ``datasets`` is not installed.
        """
        data = _from_folder(source) if isinstance(source, (str, Path)) else source
        if isinstance(data, Mapping):
            split = next(iter(data)) if split is None and len(data) == 1 else split
            if split not in data:
                raise InvalidInputError(
                    f"split is {split!r}; the data set has {files.first_few(data)}: name one with split="
                )
            data = data[split]
        if not hasattr(data, "features") or not hasattr(data, "info"):
            raise InvalidInputError(
                f"the source is a {type(data).__name__}; give a folder, a datasets.Dataset or a DatasetDict"
            )
        label = (
            Path(source).resolve().name if data is not source and isinstance(source, (str, Path)) else None
        )
        label = name or label or data.info.dataset_name or "dataset"
        return cls._made(_rows(data, label), columns, label, Path(label))

    @classmethod
    def from_beir(cls, folder: Path | str, *, split: str = "test") -> EvaluationSet:
        """Read a folder in BEIR's layout; as `rag_kit.evaluation.load_dataset`."""
        from rag_kit.evaluation.sets.beir import read_beir

        name, examples, corpus = read_beir(folder, split)
        return cls(name, examples, corpus=corpus)

    @classmethod
    def from_feedback(
        cls, path: Path | str, *, name: str | None = None, encoding: str = "utf-8", keep_unrated: bool = False
    ) -> EvaluationSet:
        """Read an export of runs with the thumbs that users gave them.

        An answer with a thumb up becomes the reference, one with a thumb down does not: it is kept under
        ``metadata["rejected"]``. What a user wrote as the right answer counts more than any thumb. Runs that asked
        the same are one example; where thumbs on the same answer disagree, it is no reference. The tag
        ``feedback`` is ``up``, ``down``, ``mixed`` or ``none``.

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
        from rag_kit.evaluation.sets.feedback import feedback_examples

        path = files.existing_file(path)
        records = files.read_records(path, encoding)
        return cls(name or _stem(path), feedback_examples(records, path.name, keep_unrated))

    def save(self, path: Path | str) -> Path:
        """Write the set as JSON Lines, as a whole or not at all; `load` gives back an equal one.

        One example a line. Below them the corpus, one passage a line, and above them the set's name where it is not
        the file's: a set without both is plain JSON Lines for every other program.

        Raises:
            InvalidInputError: If the file cannot be written, or its name has another ending.
        """
        path = files.as_path(path, "path")
        if path.suffix != ".jsonl":
            raise InvalidInputError(f"the name is {path.name!r}; give one that ends in .jsonl")
        files.check_target(path)
        header: dict[str, Any] = {} if self.name == _stem(path) else {"name": self.name}
        if self.corpus is not None:
            header["corpus"] = len(self.corpus)
        rows = [{"evaluation_set": header}] if header else []
        rows += [example.to_json() for example in self.examples]
        for passage in self.corpus or ():
            rows.append(
                {"passage": {"id": passage.id, "text": passage.text, "metadata": dict(passage.metadata)}}
            )
        files.write_jsonl(path, rows)
        return path

    @classmethod
    def _made(
        cls, records: Iterable[files.Record], columns: ColumnNames | None, name: str | None, source: Path
    ) -> EvaluationSet:
        """A set of records; beside examples, `save` writes a header and passages."""
        header: dict[str, Any] = {}
        passages: list[Passage] = []

        def examples() -> Iterator[files.Record]:
            for where, record in records:
                if set(record) == {"evaluation_set"} and isinstance(record["evaluation_set"], Mapping):
                    header.update(record["evaluation_set"])
                elif set(record) == {"passage"} and isinstance(record["passage"], Mapping):
                    try:
                        passages.append(Passage(**record["passage"]))
                    except (TypeError, InvalidInputError) as error:
                        raise InvalidInputError(f"{where}: no passage ({error}); give id and text") from error
                else:
                    yield where, record

        found = list(read_examples(examples(), columns, source.name))
        name = name or header.get("name") or _stem(source)
        return cls(name, found, corpus=passages if passages or "corpus" in header else None)

    def __repr__(self) -> str:
        corpus = "" if self.corpus is None else f", {len(self.corpus)} passages"
        return f"EvaluationSet({self.name!r}, {len(self)} examples{corpus})"

    def _repr_html_(self) -> str:
        tags = Counter(f"{name}={value}" for each in self.examples for name, value in each.tags.items())
        heading = "; ".join([repr(self), *(f"{tag}: {count}" for tag, count in tags.most_common(8))])
        rows = [
            [each.id, each.question, each.reference or " / ".join(each.answers)] for each in self.examples
        ]
        table = Table(["id", "question", "reference"], rows, heading=heading, width=160, most=10)
        return table.html()

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


def _rank(key: str, seed: int) -> bytes:
    """A place in a draw that depends on the id and the seed alone: no generator's stream could change it."""
    return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()


def _stem(path: Path) -> str:
    """The name of a set from that of its file: without the ending, and without ``.gz``."""
    return Path(path.name.removesuffix(".gz")).stem


def _from_folder(source: Path | str) -> Any:
    folder = files.as_path(source, "source")
    if not folder.is_dir():
        raise InvalidInputError(f"{str(folder)!r} is no folder; download the data set first")
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("eval", "reading a Hugging Face data set") from error
    try:
        if files.find_file(folder, "dataset_dict.json", "state.json"):
            return datasets.load_from_disk(str(folder))
        return datasets.load_dataset(str(folder.resolve()), streaming=True)
    except Exception as error:  # its own classes, pyarrow's, and those of a file's reader
        raise InvalidInputError(
            f"{folder.name!r} is no data set that can be read ({error}); give a file, a BEIR folder, or a folder "
            "with Parquet, JSON Lines or CSV files"
        ) from error


def _rows(data: Any, label: str) -> Iterator[files.Record]:
    """Rows of a data set, with the names of its class labels."""
    features = (data.features or {}).items()
    names = {column: feature.names for column, feature in features if hasattr(feature, "names")}
    try:
        for number, row in enumerate(data, start=1):
            labels = {c: names[c][row[c]] for c in names if isinstance(row[c], int) and row[c] >= 0}
            yield f"{label}: row {number}", {**row, **labels}
    except (OSError, ValueError) as error:  # pyarrow's are of these
        raise InvalidInputError(f"{label} cannot be read ({error})") from error
