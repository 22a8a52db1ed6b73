"""What a compressor is: passages cut into sentences in, the sentences to keep out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import Logic
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.showing import Shown
from rag_kit.text import sentences
from rag_kit.text.sentences import Sentence


@dataclass(frozen=True)
class Passage:
    """A document and its sentences.

    Attributes:
        document: The document; not to be changed.
        sentences: Its sentences in order; ``text == document.page_content[start:end]``.
    """

    document: Document
    sentences: Sequence[Sentence]

    @classmethod
    def of(cls, document: Document) -> Passage:
        """Cut a document into sentences."""
        return cls(document, sentences(document.page_content))


@dataclass(frozen=True)
class Selection:
    """What to keep of one passage.

    Attributes:
        kept: Positions of the sentences to keep; none: the passage is irrelevant. ``None``: it could not be judged,
            and stays whole.
        score: The score of the best sentence, if there are scores; higher is better.
    """

    kept: Sequence[int] | None
    score: float | None = None


class Compressor(Shown, ABC):
    """Base of compressors; implement ``select``.

    Attributes:
        name: Stands in the provenance as ``compress:<name>``.
    """

    name: str = "compressor"

    @abstractmethod
    def select(self, query: str, passages: Sequence[Passage], call: QueryCall) -> Logic[list[Selection]]:
        """Choose sentences: a coroutine that does all waiting through ``call``.

        Args:
            query: The query.
            passages: At least one, each with at least one sentence.
            call: Does model calls and others, on threads or natively asynchronous.

        Returns:
            One selection a passage, in their order.

        Raises:
            RagKitError: It failed as a whole.
        """

    def parts(self) -> Iterator[Runnable[object, object]]:
        """The models inside."""
        yield from ()


def keep_by_score(scores: Sequence[Sequence[float]], *, min_score: float, share: float) -> list[Selection]:
    """Keep the sentences whose score is high enough, alone and beside the best sentence of all passages.

    Args:
        scores: One a sentence, by passage.
        min_score: Lowest score.
        share: Lowest share of the best score, 0 to 1.

    Example:
        >>> [list(one.kept) for one in keep_by_score([[0.9, 0.2], [0.5]], min_score=0.3, share=0.5)]
        [[0], [0]]
    """
    best = max((score for of_one in scores for score in of_one), default=0.0)
    low = max(min_score, share * best)
    # A score of 0 is no evidence, whatever the thresholds.
    return [
        Selection(
            [place for place, score in enumerate(of_one) if score >= low and score > 0],
            max(of_one, default=None),
        )
        for of_one in scores
    ]
