"""Chat and embedding models: naming them, the embedded defaults, and the one structured call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.models.calls import atext_call as atext_call
    from rag_kit.models.calls import text_call as text_call
    from rag_kit.models.chat import chat_model as chat_model
    from rag_kit.models.embedding import embedding_model as embedding_model
    from rag_kit.models.json_cache import JsonCache as JsonCache
    from rag_kit.models.structured import astructured_call as astructured_call
    from rag_kit.models.structured import structured_call as structured_call

__all__, __getattr__, __dir__ = lazy_names(__name__)
