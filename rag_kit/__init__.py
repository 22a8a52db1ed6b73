"""rag_kit: parts for retrieval-augmented generation on LangChain and LangGraph.

Import from the layer that holds the part, e.g. ``from rag_kit.retrieval import BM25Retriever``.
``import rag_kit`` alone imports no LangChain module.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
