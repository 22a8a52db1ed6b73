"""Routing: send a question to the data sources, or to the prompt, that suit it."""

from __future__ import annotations

from rag_kit.retrieval.routing.prompts import (
    PromptRouter,
    aroute_prompt,
    prompt_router,
    route_prompt,
)
from rag_kit.retrieval.routing.retriever import RoutingRetriever
from rag_kit.retrieval.routing.route import Choice, NoRouteError, Route, RoutingError
from rag_kit.retrieval.routing.routed_prompt import RoutedPrompt
from rag_kit.retrieval.routing.routers import Router
from rag_kit.retrieval.routing.source import Source

__all__ = [
    "Choice",
    "NoRouteError",
    "PromptRouter",
    "Route",
    "RoutedPrompt",
    "Router",
    "RoutingError",
    "RoutingRetriever",
    "Source",
    "aroute_prompt",
    "prompt_router",
    "route_prompt",
]
