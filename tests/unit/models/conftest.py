"""What is known of endpoints is forgotten between tests."""

from __future__ import annotations

import pytest

from rag_kit.models import wrapped


@pytest.fixture(autouse=True)
def fresh_endpoints() -> None:
    """Each test begins with endpoints that nothing is known of."""
    wrapped._endpoints.clear()
