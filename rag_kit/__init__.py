"""rag_kit: parts for retrieval-augmented generation on LangChain and LangGraph.

Import from the layer that holds the part, e.g. ``from rag_kit.retrieval import BM25Retriever``.
``import rag_kit`` alone imports no LangChain module; it turns the telemetry of its dependencies off.
"""

from __future__ import annotations

from rag_kit._privacy import turn_telemetry_off

__version__ = "0.2.0"
__all__ = ["__version__"]

turn_telemetry_off()
