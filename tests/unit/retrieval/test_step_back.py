"""StepBackRetriever: the more general question beside the question."""

from __future__ import annotations

import json
from typing import Any

from support.rewriters import Scripted, Words, both, corpus, ids, sent

from rag_kit.documents import get_provenance
from rag_kit.retrieval import StepBackRetriever

QUESTION = "Why does my bottle bulge?"
GENERAL = "How are pressure and volume related?"
DOCS = corpus(law="Pressure times volume is constant.", bottle="A bottle may bulge.", tea="Tea is hot.")


def reply(query: str) -> str:
    return json.dumps({"query": query}, ensure_ascii=False)


def made(script: Any, docs: Any = DOCS, **settings: Any) -> StepBackRetriever:
    return StepBackRetriever.from_llm(Scripted(script=script), Words(docs=docs), **settings)


async def test_finds_the_background() -> None:
    """Results of the general question stand beside those of the question; both are in the provenance."""
    retriever = made(reply(GENERAL))
    assert ids(retriever.retriever.invoke(QUESTION)) == ["bottle"]
    found = await both(retriever, QUESTION)
    assert ids(found) == ["bottle", "law"] and sent(found) == [QUESTION, GENERAL]
    stage = get_provenance(found[1])["stages"][0]
    assert (stage["query"], stage["role"], stage["rank"]) == (GENERAL, "step_back", 1)
    assert ids(await both(made(reply(GENERAL), weights=[1, 2]), QUESTION)) == ["law", "bottle"]
    assert sent(await both(made(reply(GENERAL), include_original=False), QUESTION)) == [GENERAL]
