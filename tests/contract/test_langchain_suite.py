"""LangChain's own suite for retrievers, over every retriever around others."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests
from support import tenants

# the lexical compressor drops passages, so its own suite has texts of which it keeps enough
NAMES = [name for name in tenants.wrappers() if name != "compression, lexical"]


class TestWrappers(RetrieversIntegrationTests):
    """LangChain's standard tests, with the maker of a wrapper in the place of a class."""

    wrap: Any = None

    @pytest.fixture(autouse=True, params=NAMES)
    def choose(self, request: pytest.FixtureRequest) -> None:
        """Take one wrapper after the other."""
        self.wrap = tenants.wrappers()[request.param]

    @property
    def retriever_constructor(self) -> Any:
        """The maker of the wrapper."""
        return self.wrap

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """Keyword search in which the example query has enough hits."""
        return {"inner": tenants.words()}

    @property
    def retriever_query_example(self) -> str:
        """A query."""
        return tenants.QUESTION
