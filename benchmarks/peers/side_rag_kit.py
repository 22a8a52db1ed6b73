"""The kit itself, measured as its peers are."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import common
from langchain_core.documents import Document

from rag_kit.documents import document_keys
from rag_kit.retrieval import MultiQueryRetriever, reciprocal_rank_fusion

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))

from scripted import Leaf, Model


def main() -> None:
    """Measure, and print."""
    rounds = common.rounds()
    lists = [[Document(text, id=text) for text in ranking] for ranking in common.rankings()]
    figures = {
        "fusion 8 x 1000": common.fusion(lambda: reciprocal_rank_fusion(document_keys(lists)), rounds),
    }
    for width in common.WIDTHS:
        model = Model(reply=json.dumps({"queries": common.queries(width)}))
        mine = MultiQueryRetriever.from_llm(model, Leaf(), n=width - 1)
        figures[f"multi-query {width}, sync"] = common.blocking(
            lambda mine=mine: mine.invoke("question"), rounds
        )
        figures[f"multi-query {width}, async"] = common.native(
            lambda mine=mine: mine.ainvoke("question"), rounds
        )
    common.report("rag_kit", version("rag-kit"), figures)


if __name__ == "__main__":
    main()
