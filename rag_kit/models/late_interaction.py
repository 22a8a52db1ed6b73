"""Late interaction: a query and a passage are compared by the vectors of their tokens (ColBERT, arXiv 2004.12832)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from numpy.typing import NDArray

from rag_kit.errors import ModelOutputError

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

    def tokens_by_text(self, texts: Sequence[str]) -> dict[str, TokenVectors]:
        """Return the vectors of the tokens of each text.

        Raises:
            ModelOutputError: The model gave something else than finite vectors of one length for each text.
        """
        distinct = list(dict.fromkeys(texts))
        rows = [np.asarray(one, np.float32) for one in self.passage_tokens(distinct)] if distinct else []
        are_vectors = all(one.ndim == 2 and np.isfinite(one).all() for one in rows)
        if not are_vectors or len(rows) != len(distinct) or len({one.shape[1] for one in rows}) > 1:
            wanted = f"an array of shape (tokens, d) of finite numbers for each of {len(distinct)} texts"
            raise ModelOutputError(f"{self.name} gave something else than {wanted}, all with one d.")
        return dict(zip(distinct, rows, strict=True))

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return `max_sim` of each pair of query and passage."""
        passages = self.tokens_by_text([passage for _, passage in text_pairs])
        queries = {query: self.query_tokens(query) for query in {query for query, _ in text_pairs}}
        return [max_sim(queries[query], passages[passage]) for query, passage in text_pairs]


def max_sim(query: TokenVectors, passage: TokenVectors) -> float:
    """Return the mean over the query's tokens of the best inner product with a token of the passage.

    The paper has the sum, which gives the same order; the means of long and short questions can be compared.
    """
    return float((query @ passage.T).max(axis=1, initial=-1.0).mean())
