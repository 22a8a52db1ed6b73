"""Prompts are files: load one, list them, check them, and render what goes into them.

``load_prompt("answer", language="zh")`` reads ``prompts/answer.zh.prompt`` and returns a LangChain chat prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.prompts.library import load_prompt as load_prompt
    from rag_kit.prompts.rendering import render_passages as render_passages
    from rag_kit.prompts.template import PromptTemplate as PromptTemplate

__all__, __getattr__, __dir__ = lazy_names(__name__)
