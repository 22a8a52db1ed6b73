"""Answers of a model kept in a file, so that the same question is not paid for twice."""

from __future__ import annotations

from rag_kit.models.rewrite_cache.cache import RewriteCache
from rag_kit.models.rewrite_cache.identity import call_key, model_identity, plain_endpoint

__all__ = ["RewriteCache", "call_key", "model_identity", "plain_endpoint"]
