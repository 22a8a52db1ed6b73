"""The extractive chat model: no language model, deterministic, without network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.models.extractive.model import ExtractiveChatModel

__all__ = ["ExtractiveChatModel"]

__getattr__, __dir__ = lazy_attributes(__name__, {"ExtractiveChatModel": ".model"})
