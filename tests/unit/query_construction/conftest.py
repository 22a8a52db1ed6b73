"""A server that answers as OpenAI's, for text to SQL and to Cypher."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.openai_server import OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as started:
        yield started
