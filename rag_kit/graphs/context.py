"""What a caller, or an assistant in Studio, may set for one run of a graph."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def _nodes(*names: str) -> dict[str, Any]:
    """Metadata by which Studio shows a setting beside the nodes that read it."""
    return {"langgraph_nodes": list(names)}


class PlainRagContext(BaseModel):
    """Settings of one run of the plain graph; each has a default.

    Example:
        >>> PlainRagContext(k=3).k
        3
    """

    model_config = ConfigDict(extra="forbid")

    language: Literal["auto", "en", "zh"] = Field(
        default="auto",
        description="Language of the prompts; 'auto' follows the question.",
        json_schema_extra=_nodes("condense", "answer"),
    )
    k: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="How many passages to retrieve; empty: what the retriever was made with.",
        json_schema_extra=_nodes("retrieve"),
    )
    filter: dict[str, Any] | None = Field(
        default=None,
        description='Only passages whose metadata match, e.g. {"year": {"$gte": 2020}}.',
        json_schema_extra=_nodes("retrieve"),
    )
    max_calls: int | None = Field(
        default=8, ge=0, description="Model calls that one run may make.", json_schema_extra=_nodes("answer")
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens, in and out, that one run may use.",
        json_schema_extra=_nodes("answer"),
    )
    deadline: float | None = Field(
        default=300.0,
        gt=0,
        description="Seconds that one run may take.",
        json_schema_extra=_nodes("retrieve", "answer"),
    )
