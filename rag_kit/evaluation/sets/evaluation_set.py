"""A named, ordered, unchangeable set of examples, and the corpus that their gold ids speak of."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents.display import Table
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import _files as files
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.beir import read_beir
from rag_kit.evaluation.sets.feedback import feedback_examples
from rag_kit.evaluation.sets.records import corpus_passages, read_examples, records_of_examples
from rag_kit.indexing.files import as_path

if TYPE_CHECKING:
    from langchain_core.documents import Document

Columns = Mapping[str, "str | Sequence[str] | None"]


class EvaluationSet(Sequence[Example]):
    """Questions to evaluate with, in order, each with what is known of its right answer.

    Args:
        name: Its name, for tables and manifests.
        examples: The examples; their ids must be unique.
        corpus: What the ids in ``relevant`` and ``spans`` belong to: `Passage`, LangChain documents, or texts.
            ``None`` where they are elsewhere.

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
        self.examples = tuple(examples) if isinstance(examples, Iterable) else (examples,)
        self._positions: dict[str, int] = {}
        for position, example in enumerate(self.examples):
            if not isinstance(example, Example):
                raise InvalidInputError(
                    f"examples[{position}] is a {type(example).__name__}; give objects of the class Example"
                )
            if (first := self._positions.setdefault(example.id, position)) != position:
                pair = f"examples[{first}] and of examples[{position}]"
                raise InvalidInputError(f"the id {example.id!r:.80} is that of {pair}; ids must be unique")
        self.corpus = None if corpus is None else corpus_passages(corpus)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, key: int | str | slice) -> Any:
        """Return the example of an id or a position; a slice is a set."""
        if isinstance(key, slice):
            return self._part_of(self.examples[key])
        if isinstance(key, str):
            if key not in self._positions:
                raise KeyError(f"{self.name!r} has no example with the id {key!r:.80}")
            return self.examples[self._positions[key]]
        return self.examples[key]

    def __contains__(self, value: object) -> bool:
        return value in self._positions if isinstance(value, str) else value in self.examples

    def __eq__(self, other: object) -> bool:
        content = (self.name, self.examples, self.corpus)
        return isinstance(other, EvaluationSet) and content == (other.name, other.examples, other.corpus)

    __hash__ = None  # type: ignore[assignment]

    def filter(self, wanted: Callable[[Example], object] | None = None, **tags: str) -> EvaluationSet:
        """Return the examples for which a function is true, and that have these tags."""
        tagged = (example for example in self.examples if tags.items() <= example.tags.items())
        return self._part_of(example for example in tagged if wanted is None or wanted(example))

    def slices(self, by: str | Callable[[Example], object]) -> dict[str, EvaluationSet]:
        """Split the set by the value of a tag (``""`` without it), or by what a function returns."""
        groups: dict[str, list[Example]] = {}
        for example in self.examples:
            value = example.tags.get(by, "") if isinstance(by, str) else by(example)
            groups.setdefault("" if value is None else str(value), []).append(example)
        return {value: self._part_of(members) for value, members in groups.items()}

    def fingerprint(self) -> str:
        """Hash all examples and the corpus, in any order, without the name."""
        lines = [json.dumps(example.to_json(), sort_keys=True) for example in self.examples]
        lines += [json.dumps(["passage", p.id, p.text]) for p in self.corpus or ()]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def documents(self) -> list[Document]:
        """Return the corpus as LangChain documents, to index.

        Raises:
            InvalidInputError: If the set has no corpus.
        """
        from langchain_core.documents import Document

        if self.corpus is None:
            raise InvalidInputError(f"the set {self.name!r} has no corpus; give one with corpus=")
        pairs = [(p, {"corpus_id": p.id, **p.metadata}) for p in self.corpus]
        return [Document(id=p.id, page_content=p.text, metadata=metadata) for p, metadata in pairs]

    @classmethod
    def load(
        cls,
        path: Path | str | Any,
        *,
        columns: Columns | None = None,
        name: str | None = None,
        split: str | None = None,
    ) -> EvaluationSet:
        """Read a set; its form is known by the name of the file or by what is in the folder. Nothing is fetched.

        Args:
            path: A file (``.jsonl``, ``.json``, ``.csv``, ``.tsv``, also ``.gz``; ``.parquet``, ``.xlsx``), a BEIR
                folder, or a Hugging Face data set: a folder as it is downloaded or of ``save_to_disk``, or a loaded
                ``Dataset`` or ``DatasetDict``. Cells of a CSV are parted by comma, semicolon, tab or ``|``, whatever
                its header has most of.
            columns: Field of `Example` -> name in the file, for what has another name than usual; ``None`` as a name
                leaves a field out. ``"tags"`` may be a list of columns. Names that are no field become metadata.
            name: The set's name; the file's where it is not given.
            split: Which split of a folder. A BEIR folder is read without ``columns``.

        Raises:
            InvalidInputError: If it is none of these, or not right; the message names file and line, or the row.
        """
        source: Any = as_path(path, "path") if isinstance(path, (str, Path)) else path
        if isinstance(source, Path) and not source.is_dir():
            if split is not None:
                raise InvalidInputError(f"{source.name!r} is read without a split; split is for a folder")
            return cls._from_records(files.read_records(source), columns, name, source.name)
        if not (isinstance(source, Path) and files.find_file(source, "queries.jsonl", "queries.jsonl.gz")):
            label, records = files.huggingface_records(source, name, split)
            return cls._from_records(records, columns, label, label)
        if columns:
            raise InvalidInputError(f"{source.name!r} is a BEIR folder of known columns; leave columns out")
        folder_name, examples, corpus = read_beir(source, split or "test")
        return cls(name or folder_name, examples, corpus=corpus)

    @classmethod
    def from_pandas(cls, frame: Any, *, columns: Columns | None = None, name: str = "frame") -> EvaluationSet:
        """Read a pandas frame, one example a row; empty cells count as missing. ``columns`` as in `load`."""
        return cls._from_records(files.frame_records(frame, "the frame"), columns, name, "the frame")

    @classmethod
    def from_feedback(cls, path: Path | str, *, name: str | None = None) -> EvaluationSet:
        """Read an export of runs with the thumbs that users gave them; runs without one are left out.

        An answer with a thumb up becomes the reference, one with a thumb down is kept under ``metadata["rejected"]``.
        What a user wrote as the right answer counts more than any thumb. Runs that asked the same are one example;
        an answer with both thumbs is no reference. The tag ``feedback`` is ``up``, ``down`` or ``mixed``.

        Args:
            path: JSON Lines or CSV; rows with ``inputs``, ``outputs`` and a thumb: ``score``, ``thumbs``, ``rating``
                or ``feedback`` (up or down, 1 or 0 or -1, true or false).
            name: The set's name; the file's where it is not given.

        Raises:
            InvalidInputError: If a row holds no question or a thumb that is none; the message names file and line.
        """
        path = as_path(path, "path")
        return cls(name or _set_name(path.name), feedback_examples(files.read_records(path), path.name))

    def save(self, path: Path | str) -> Path:
        """Write the set as JSON Lines, as a whole or not at all; `load` gives back an equal one.

        One example a line, then one passage of the corpus a line; above them the set's name where it is not the file's.
        Without both it is plain JSON Lines for every other program.

        Raises:
            InvalidInputError: If the file cannot be written, or its name has another ending.
        """
        path = as_path(path, "path")
        if path.suffix != ".jsonl":
            raise InvalidInputError(f"the name is {path.name!r}; give one that ends in .jsonl")
        header: dict[str, Any] = {} if self.name == _set_name(path.name) else {"name": self.name}
        if self.corpus is not None:
            header["corpus"] = len(self.corpus)
        passages = [{"id": p.id, "text": p.text, "metadata": dict(p.metadata)} for p in self.corpus or ()]
        rows = [{"evaluation_set": header}] if header else []
        rows += [example.to_json() for example in self.examples]
        files.write_jsonl(path, [*rows, *({"passage": passage} for passage in passages)])
        return path

    @classmethod
    def _from_records(
        cls, records: Iterable[files.Record], columns: Columns | None, name: str | None, source: str
    ) -> EvaluationSet:
        """Make a set of records; a header and passages that `save` wrote become its name and corpus."""
        header: dict[str, Any] = {}
        passages: list[Passage] = []
        examples = list(read_examples(records_of_examples(records, header, passages), columns, source))
        expected = header.get("corpus", 0)  # number of passages
        if not isinstance(expected, int) or len(passages) < expected:
            raise InvalidInputError(
                f"{source} has {len(passages)} passages, but its first line says {expected!r:.80}; the file was cut"
            )
        corpus = passages if passages or "corpus" in header else None
        return cls(name or header.get("name") or _set_name(source), examples, corpus=corpus)

    def __repr__(self) -> str:
        corpus = "" if self.corpus is None else f", {len(self.corpus)} passages"
        return f"EvaluationSet({self.name!r}, {len(self)} examples{corpus})"

    def _repr_html_(self) -> str:
        tags = Counter(f"{name}={value}" for example in self for name, value in example.tags.items())
        heading = "; ".join([repr(self), *(f"{tag}: {count}" for tag, count in tags.most_common(8))])
        rows = [[e.id, e.question, e.reference or " / ".join(e.answers)] for e in self]
        return Table(["id", "question", "reference"], rows, heading=heading, width=160, limit=10).html()

    def _part_of(self, examples: Iterable[Example]) -> EvaluationSet:
        part = EvaluationSet(self.name, examples)
        part.corpus = self.corpus
        return part


def _set_name(name: str) -> str:
    """Name a set after its file, without the suffix and ``.gz``."""
    return Path(name.removesuffix(".gz")).stem
