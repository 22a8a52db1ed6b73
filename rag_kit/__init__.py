"""rag_kit: parts for retrieval-augmented generation on LangChain and LangGraph.

Import from the layer that holds the part, e.g. ``from rag_kit.retrieval import BM25Retriever``.
``import rag_kit`` alone imports no LangChain module. It turns the telemetry of every dependency off, before these are
imported, unless the user has turned it on: a variable of the environment that is set, to whatever value, is left alone.
LangSmith traces only where the user asks for it, so it is not here.
"""

from __future__ import annotations

import os

__version__ = "0.2.0"
__all__ = ["__version__"]

#: Variable -> value that turns the telemetry off. onnxruntime has sent events from Linux since 1.29, also when it
#: is only imported by Chroma or by the file converters.
TELEMETRY_OFF = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ORT_TELEMETRY_DISABLED": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "RAGAS_DO_NOT_TRACK": "true",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
for _name, _value in TELEMETRY_OFF.items():
    os.environ.setdefault(_name, _value)
