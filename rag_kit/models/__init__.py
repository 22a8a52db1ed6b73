"""Chat and embedding models: naming them, the embedded defaults, and the one structured call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from .chat import chat_model, describe_model
    from .embedding import embedding_model, embedding_name, recorded_embedding_model
    from .endpoint import forget_methods
    from .extractive import ExtractiveChatModel
    from .failures import map_model_error
    from .minilm import MiniLMEmbeddings
    from .rewrite_cache import RewriteCache
    from .structured import (
        RAISE,
        StructuredResult,
        astructured_call,
        astructured_call_detailed,
        structured_call,
        structured_call_detailed,
    )
    from .text_calls import atext_call, text_call
    from .tokens import estimate_tokens

__all__ = [
    "RAISE",
    "ExtractiveChatModel",
    "MiniLMEmbeddings",
    "RewriteCache",
    "StructuredResult",
    "astructured_call",
    "astructured_call_detailed",
    "atext_call",
    "chat_model",
    "describe_model",
    "embedding_model",
    "embedding_name",
    "estimate_tokens",
    "forget_methods",
    "map_model_error",
    "recorded_embedding_model",
    "structured_call",
    "structured_call_detailed",
    "text_call",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "RAISE": ".structured",
        "ExtractiveChatModel": ".extractive",
        "MiniLMEmbeddings": ".minilm",
        "RewriteCache": ".rewrite_cache",
        "StructuredResult": ".structured",
        "astructured_call": ".structured",
        "astructured_call_detailed": ".structured",
        "atext_call": ".text_calls",
        "chat_model": ".chat",
        "describe_model": ".chat",
        "embedding_model": ".embedding",
        "embedding_name": ".embedding",
        "estimate_tokens": ".tokens",
        "forget_methods": ".endpoint",
        "map_model_error": ".failures",
        "recorded_embedding_model": ".embedding",
        "structured_call": ".structured",
        "structured_call_detailed": ".structured",
        "text_call": ".text_calls",
    },
)
