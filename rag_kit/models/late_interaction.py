"""Late interaction: a query and a passage are compared by the vectors of their tokens (ColBERT, arXiv 2004.12832)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from numpy.typing import NDArray

#: Vectors of a text's tokens, shape (tokens, d).
TokenVectors: TypeAlias = NDArray[np.float32]


class LateInteraction(BaseCrossEncoder):
    """Base of the models that give each token of a text a vector.

    The vectors of passages do not depend on the query: an index can keep them (`DocumentIndex`, leg ``"tokens"``), and
    reranking then runs the model for the query alone.
    """

    name: str  # stable, recorded in an index

    @abstractmethod
    def passage_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the vectors of each passage's tokens, of length 1, in the order of the texts."""

    def query_tokens(self, query: str) -> TokenVectors:
        """Return the vectors of a query's tokens; by default they are made as a passage's."""
        return self.passage_tokens([query])[0]

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return `max_sim` of each pair of query and passage."""
        texts = list(dict.fromkeys(passage for _, passage in text_pairs))
        passages = dict(zip(texts, self.passage_tokens(texts), strict=True))
        queries = {query: self.query_tokens(query) for query in {query for query, _ in text_pairs}}
        return [max_sim(queries[query], passages[passage]) for query, passage in text_pairs]


def max_sim(query: TokenVectors, passage: TokenVectors) -> float:
    """Return the mean over the query's tokens of the best inner product with a token of the passage.

    The paper has the sum, which gives the same order; the means of long and short questions can be compared.
    """
    return float((query @ passage.T).max(axis=1, initial=-1.0).mean())
