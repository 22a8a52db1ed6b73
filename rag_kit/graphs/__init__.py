"""Compiled LangGraph state machines, put together from retrievers, prompt files and a chat model.

Every builder takes ready parts and returns an ordinary compiled graph: ``invoke``, ``ainvoke``, ``stream``,
checkpointers, Studio and use as a subgraph all work as LangGraph documents them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.graphs.adapters import as_chat as as_chat
    from rag_kit.graphs.adapters import as_tool as as_tool
    from rag_kit.graphs.adaptive.build import build_adaptive_rag as build_adaptive_rag
    from rag_kit.graphs.conversational.build import build_conversational_rag as build_conversational_rag
    from rag_kit.graphs.crag.build import build_crag as build_crag
    from rag_kit.graphs.evaluators.fitting import fit_thresholds as fit_thresholds
    from rag_kit.graphs.guards import Guards as Guards
    from rag_kit.graphs.middleware import CitationCheck as CitationCheck
    from rag_kit.graphs.plain import build_plain_rag as build_plain_rag
    from rag_kit.graphs.self_rag.build import build_self_rag as build_self_rag
    from rag_kit.graphs.wiring import uncompiled as uncompiled

__all__, __getattr__, __dir__ = lazy_names(__name__)
