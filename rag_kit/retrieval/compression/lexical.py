"""Sentences by the evidence of their words; needs no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_kit.retrieval.compression.base import Compressor, Passage, Selection, keep_by_score
from rag_kit.retrieval.numbers import check_number
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.text.analysis import warm_up
from rag_kit.text.evidence.passages import MAX_SENTENCES, PassageText, passage_text
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import LEAST_NEAR, Candidate, collect


class LexicalCompressor(Compressor):
    """Keep the sentences whose words speak for an answer. English and Chinese, deterministic.

    A sentence is scored as the extractive model scores it: by the query's words in it, beside it and in the title,
    rare ones counting more, and by whether it holds what is asked for (a date for "when"). It is kept if its
    score comes near the best one, enough of the query is in or beside it, and it holds a word of the query or what
    is asked for itself.

    Args:
        min_score: Lowest share of the query's weight that must stand in the sentence, its neighbours and the title,
            0 to 1. Without this, passages about something else would keep their best sentence.
        share: Lowest share of the best sentence's score, 0 to 1; higher is shorter.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, CompressionRetriever
        >>> words = BM25Retriever.from_texts(["Tea is hot. The fan is loud. It rains."])
        >>> CompressionRetriever(retriever=words, compressor=LexicalCompressor()).invoke("loud fan")[0].page_content
        'The fan is loud.'
    """

    name = "lexical"

    def __init__(self, *, min_score: float = LEAST_NEAR, share: float = 0.5) -> None:
        self.min_score = check_number("min_score", min_score, most=1.0)
        self.share = check_number("share", share, most=1.0)
        warm_up()
        analyse("warm")

    async def select(self, query: str, passages: Sequence[Passage], call: QueryCall) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        question = analyse(query)
        scores = [[0.0] * len(passage.sentences) for passage in passages]
        for batch in batches(passages):
            places = [piece.start for piece in batch]
            for found in collect(question, [piece.text for piece in batch]):
                piece = batch[found.place]
                place = _place(passages[piece.passage], found, places[found.place])
                if place is not None:
                    places[found.place] = place + 1
                    scores[piece.passage][place] = found.worth(self.min_score)
        return keep_by_score(scores, min_score=0.0, share=self.share)


@dataclass(frozen=True)
class Piece:
    """A run of sentences of one passage.

    Attributes:
        passage: Position of the passage.
        start: Position of the run's first sentence.
        text: Its text, and the title of the passage.
    """

    passage: int
    start: int
    text: PassageText


def batches(passages: Sequence[Passage]) -> Iterator[list[Piece]]:
    """The passages in lots of as many sentences as are looked at together; longer passages in pieces.

    Example:
        >>> from langchain_core.documents import Document
        >>> [[piece.start for piece in lot] for lot in batches([Passage.of(Document("Yes. " * 500))])]
        [[0], [400]]
    """
    lot: list[Piece] = []
    room = MAX_SENTENCES
    for number, passage in enumerate(passages):
        for start in range(0, len(passage.sentences), MAX_SENTENCES):
            part = passage.sentences[start : start + MAX_SENTENCES]
            if len(part) > room:
                yield lot
                lot, room = [], MAX_SENTENCES
            text = passage.document.page_content[part[0].start : part[-1].end]
            lot.append(Piece(number, start, passage_text(number + 1, text, passage.document.metadata)))
            room -= len(part)
    if lot:
        yield lot


def _place(passage: Passage, found: Candidate, start: int) -> int | None:
    """Where a sentence that was scored stands; headings are passed over in the scoring."""
    for place in range(start, len(passage.sentences)):
        if passage.sentences[place].text.strip() == found.text:
            return place
    return None
