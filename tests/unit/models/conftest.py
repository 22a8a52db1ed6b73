"""Forget between tests what is known of endpoints."""

from __future__ import annotations

import pytest

from rag_kit.models import runnables


@pytest.fixture(autouse=True)
def fresh_endpoints() -> None:
    """Each test begins with endpoints that nothing is known of."""
    runnables._endpoints.clear()
