"""Telemetry of every dependency is off, unless the user has turned it on in the environment.

The variables must be set before the libraries are imported, so ``import rag_kit`` does it. A variable that is
already set, to whatever value, is left alone. LangSmith traces only where the user asks for it, so it is not here.
"""

from __future__ import annotations

import os

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


def turn_telemetry_off() -> None:
    """Set what is not set yet."""
    for name, value in TELEMETRY_OFF.items():
        os.environ.setdefault(name, value)
