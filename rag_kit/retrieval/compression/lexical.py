"""Sentences by the words they share with the query; needs no model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rag_kit.retrieval.compression.base import Compressor, Passage, Selection, keep_by_score
from rag_kit.retrieval.numbers import check_number
from rag_kit.retrieval.refine_call import RefineCall
from rag_kit.retrieval.rewrite_call import Steps
from rag_kit.text import content_words, warm_up


class LexicalCompressor(Compressor):
    """Keep the sentences that hold the query's words, rare words counting more. English and Chinese.

    A sentence's score is the share of the query's weight that its words have, and to a part those of the sentences
    beside it: an answer often stands next to the sentence that names the subject. A word's weight is its
    rarity among the sentences of all passages.

    Args:
        min_score: Lowest score of a sentence that is kept, 0 to 1.
        share: Lowest share of the best sentence's score, 0 to 1.
        beside: What the words of the sentences beside it count, 0 to 1.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, CompressionRetriever
        >>> words = BM25Retriever.from_texts(["Tea is hot. The fan is loud. It rains."])
        >>> CompressionRetriever(retriever=words, compressor=LexicalCompressor()).invoke("loud fan")[0].page_content
        'The fan is loud.'
    """

    name = "lexical"

    def __init__(self, *, min_score: float = 0.2, share: float = 0.5, beside: float = 0.3) -> None:
        self.min_score = check_number("min_score", min_score, most=1.0)
        self.share = check_number("share", share, most=1.0)
        self.beside = check_number("beside", beside, most=1.0)
        warm_up()

    def select(self, query: str, passages: Sequence[Passage], call: RefineCall) -> Steps[list[Selection]]:
        """Choose sentences; see ``Compressor.select``."""
        yield from ()
        bags = [[frozenset(content_words(one.text)) for one in passage.sentences] for passage in passages]
        scores = evidence(content_words(query), bags, self.beside)
        return keep_by_score(scores, min_score=self.min_score, share=self.share)


def evidence(
    words: Sequence[str], bags: Sequence[Sequence[frozenset[str]]], beside: float
) -> list[list[float]]:
    """The score of each sentence, by passage.

    Example:
        >>> evidence(["loud", "fan"], [[frozenset({"fan", "loud"}), frozenset({"tea"})]], 0.0)
        [[1.0, 0.0]]
    """
    wanted = set(words)
    count = sum(map(len, bags))
    frequency = Counter(word for of_one in bags for bag in of_one for word in bag & wanted)
    weight = {word: math.log1p((count + 1) / (frequency[word] + 0.5)) for word in wanted}
    total = math.fsum(weight.values()) or 1.0
    found = []
    for of_one in bags:
        hits = [bag & wanted for bag in of_one]
        scores = []
        for place, own in enumerate(hits):
            around = frozenset().union(*hits[max(0, place - 1) : place + 2]) - own if own else frozenset()
            value = math.fsum(weight[word] for word in own) + beside * math.fsum(
                weight[word] for word in around
            )
            scores.append(value / total)
        found.append(scores)
    return found
