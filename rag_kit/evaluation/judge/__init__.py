"""The judge: a chat model and an embedding model behind every metric that needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge

__all__ = ["Judge"]

__getattr__, __dir__ = lazy_attributes(__name__, {"Judge": ".judge"})
