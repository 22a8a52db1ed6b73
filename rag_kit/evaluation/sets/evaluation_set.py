"""A named, ordered, unchangeable set of examples, and the corpus that their gold ids speak of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets import parting
from rag_kit.evaluation.sets.stored import Stored

if TYPE_CHECKING:
    from langchain_core.documents import Document


class EvaluationSet(Stored, Sequence[Example]):
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
