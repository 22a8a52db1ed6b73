"""Reciprocal rank fusion of 8 lists of 1,000 documents, against a bare dict loop and LangChain's fusion."""

from __future__ import annotations

import warnings
from functools import partial

from common import bare_loop, rankings
from harness import Row, at_least, at_most, interleaved, median_ratio

from rag_kit.retrieval.fusion import reciprocal_rank_fusion


def run(quick: bool = False) -> list[Row]:
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_classic.retrievers import EnsembleRetriever

    lists = rankings()
    documents = [[Document(text) for text in ranking] for ranking in lists]
    theirs = EnsembleRetriever(retrievers=[RunnableLambda(lambda _: [])] * 8, weights=[1.0] * 8, c=60)
    times = interleaved(
        {
            "rag_kit": partial(reciprocal_rank_fusion, lists),
            "bare": partial(bare_loop, lists),
            "langchain": partial(theirs.weighted_reciprocal_rank, documents),
        },
        repeats=7 if quick else 31,
    )
    return [
        at_most("fusion 8 x 1000 / bare dict loop", median_ratio(times, "rag_kit", "bare"), 1.2),
        at_least("LangChain's fusion / fusion, 8 x 1000", median_ratio(times, "langchain", "rag_kit"), 2.0),
    ]
