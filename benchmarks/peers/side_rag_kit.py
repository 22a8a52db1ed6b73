"""The kit itself, measured as its peers are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import common
from langchain_core.documents import Document

from rag_kit.documents import document_keys
from rag_kit.retrieval import MultiQueryRetriever, reciprocal_rank_fusion

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))

from scripted import Leaf, Model


def search(width: int) -> tuple[Any, Any]:
    """A retriever's blocking and native search."""
    model = Model(reply=json.dumps({"queries": common.queries(width)}))
    made = MultiQueryRetriever.from_llm(model, Leaf(), n=width - 1)
    return lambda: made.invoke("question"), lambda: made.ainvoke("question")


if __name__ == "__main__":
    lists = [[Document(text, id=text) for text in ranking] for ranking in common.rankings()]
    common.measure("rag_kit", "rag-kit", lambda: reciprocal_rank_fusion(document_keys(lists)), search)
