"""Prompts are files: load one, list them, check them, and render what goes into them.

``load_prompt("answer", language="zh")`` reads ``prompts/answer.zh.prompt`` and returns a LangChain chat prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.prompts.format import LANGUAGES, Problem, PromptFile
    from rag_kit.prompts.library import PromptLibrary, load_prompt, prompt_from_text
    from rag_kit.prompts.rendering import render_history, render_passages
    from rag_kit.prompts.tags import RESERVED_TAGS, Markup, escape_tags, unescape_tags
    from rag_kit.prompts.template import PromptTemplate

__all__ = [
    "LANGUAGES",
    "RESERVED_TAGS",
    "Markup",
    "Problem",
    "PromptFile",
    "PromptLibrary",
    "PromptTemplate",
    "escape_tags",
    "load_prompt",
    "prompt_from_text",
    "render_history",
    "render_passages",
    "unescape_tags",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "LANGUAGES": ".format",
        "Problem": ".format",
        "PromptFile": ".format",
        "PromptLibrary": ".library",
        "load_prompt": ".library",
        "prompt_from_text": ".library",
        "render_history": ".rendering",
        "render_passages": ".rendering",
        "RESERVED_TAGS": ".tags",
        "Markup": ".tags",
        "escape_tags": ".tags",
        "unescape_tags": ".tags",
        "PromptTemplate": ".template",
    },
)
