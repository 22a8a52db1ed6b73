"""Compiled LangGraph state machines, put together from retrievers, prompt files and a chat model.

Every builder takes ready parts and returns an ordinary compiled graph: ``invoke``, ``ainvoke``, ``stream``,
checkpointers, Studio and use as a subgraph all work as LangGraph documents them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.adaptive import (
        AdaptiveContext,
        AdaptiveState,
        RuleClassifier,
        build_adaptive_rag,
    )
    from rag_kit.graphs.chat import as_chat
    from rag_kit.graphs.context import PlainRagContext
    from rag_kit.graphs.conversational import (
        ConversationalContext,
        ConversationalState,
        aforget_facts,
        build_conversational_rag,
        forget_facts,
    )
    from rag_kit.graphs.crag import CragContext, CragState, build_crag
    from rag_kit.graphs.decomposed import DecomposedContext, DecomposedState, build_decomposed_rag
    from rag_kit.graphs.evaluators import (
        CrossEncoderEvaluator,
        Evaluator,
        Fitted,
        FunctionEvaluator,
        Grading,
        LexicalEvaluator,
        LLMEvaluator,
        Thresholds,
        afit_thresholds,
        as_evaluator,
        fit_thresholds,
    )
    from rag_kit.graphs.guards import Guards, Refusal
    from rag_kit.graphs.plain import build_plain_rag
    from rag_kit.graphs.self_rag import SelfRagContext, SelfRagState, build_self_rag
    from rag_kit.graphs.state import PlainRagState
    from rag_kit.graphs.tool import (
        as_tool,
    )
    from rag_kit.graphs.wiring import RagGraph, uncompiled

__all__ = [
    "AdaptiveContext",
    "AdaptiveState",
    "ConversationalContext",
    "ConversationalState",
    "CragContext",
    "CragState",
    "CrossEncoderEvaluator",
    "DecomposedContext",
    "DecomposedState",
    "Evaluator",
    "Fitted",
    "FunctionEvaluator",
    "Grading",
    "Guards",
    "LLMEvaluator",
    "LexicalEvaluator",
    "PlainRagContext",
    "PlainRagState",
    "RagGraph",
    "Refusal",
    "RuleClassifier",
    "SelfRagContext",
    "SelfRagState",
    "Thresholds",
    "afit_thresholds",
    "aforget_facts",
    "as_chat",
    "as_evaluator",
    "as_tool",
    "build_adaptive_rag",
    "build_conversational_rag",
    "build_crag",
    "build_decomposed_rag",
    "build_plain_rag",
    "build_self_rag",
    "fit_thresholds",
    "forget_facts",
    "uncompiled",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "build_plain_rag": ".plain",
        "build_crag": ".crag",
        "CragContext": ".crag",
        "CragState": ".crag",
        "build_decomposed_rag": ".decomposed",
        "DecomposedContext": ".decomposed",
        "DecomposedState": ".decomposed",
        "build_self_rag": ".self_rag",
        "SelfRagContext": ".self_rag",
        "SelfRagState": ".self_rag",
        "Guards": ".guards",
        "Refusal": ".guards",
        "PlainRagContext": ".context",
        "PlainRagState": ".state",
        "CrossEncoderEvaluator": ".evaluators",
        "Evaluator": ".evaluators",
        "Fitted": ".evaluators",
        "FunctionEvaluator": ".evaluators",
        "Grading": ".evaluators",
        "LLMEvaluator": ".evaluators",
        "LexicalEvaluator": ".evaluators",
        "Thresholds": ".evaluators",
        "afit_thresholds": ".evaluators",
        "as_evaluator": ".evaluators",
        "fit_thresholds": ".evaluators",
        "build_conversational_rag": ".conversational",
        "ConversationalContext": ".conversational",
        "ConversationalState": ".conversational",
        "forget_facts": ".conversational",
        "aforget_facts": ".conversational",
        "build_adaptive_rag": ".adaptive",
        "AdaptiveContext": ".adaptive",
        "AdaptiveState": ".adaptive",
        "RuleClassifier": ".adaptive",
        "as_chat": ".chat",
        "as_tool": ".tool",
        "RagGraph": ".wiring",
        "uncompiled": ".wiring",
    },
)
