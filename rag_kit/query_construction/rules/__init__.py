"""Filters from questions by rule: values, numbers and dates that a question names, in English and Chinese."""

from __future__ import annotations

from rag_kit.query_construction.rules.constructor import RuleConstructor

__all__ = ["RuleConstructor"]
