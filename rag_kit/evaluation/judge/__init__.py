"""The judge: a chat model and an embedding model behind every metric that needs one, and its adapters for Ragas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_embeddings, ragas_llm
    from rag_kit.evaluation.judge.calls import Call, Calls
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.judge.ragas_import import load_ragas, require_ragas

__all__ = [
    "Call",
    "Calls",
    "FilePrompt",
    "Judge",
    "load_ragas",
    "ragas_embeddings",
    "ragas_llm",
    "require_ragas",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Call": ".calls",
        "Calls": ".calls",
        "FilePrompt": ".adapter",
        "Judge": ".judge",
        "load_ragas": ".ragas_import",
        "ragas_embeddings": ".adapter",
        "ragas_llm": ".adapter",
        "require_ragas": ".ragas_import",
    },
)
