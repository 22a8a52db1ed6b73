"""Scripted models for text to SQL and to Cypher, and statements with tricks to get out of quotes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from rag_kit.errors import StatementError
from support.openai_server import OpenAIServer


def write(statement: str) -> dict[str, str]:
    """The values that a model gives for a statement."""
    return {"reason": "It does.", "statement": statement}


def scripted(*statements: str) -> FakeListChatModel:
    """A model that writes these statements, one a call."""
    return FakeListChatModel(responses=[json.dumps(write(each), ensure_ascii=False) for each in statements])


def client(server: OpenAIServer, *script: Any) -> ChatOpenAI:
    """A client of the server, which answers by the script."""
    server.script[:] = script
    return ChatOpenAI(model="test", base_url=server.url, api_key="sk-test")  # type: ignore[arg-type]


def rewritten(
    rewrite: Callable[[str], str], statement: str, shapes: Iterable[str], insides: Iterable[str]
) -> list[str]:
    """Write a statement anew with each shape, whose ``S`` is a text inside quotes; those that are let through."""
    found = []
    for shape in shapes:
        for inside in insides:
            try:
                found.append(rewrite(statement.replace("{}", shape.replace("S", inside))))
            except StatementError:
                continue
    return found
