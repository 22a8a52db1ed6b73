"""LangChain's own suite for retrievers, over every retriever of the kit."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests
from support import tenants

# the lexical compressor drops passages, so its own suite has texts of which it keeps enough
NAMES = [name for name in tenants.wrappers() if name != "compression, lexical"]
# those of which nothing stands among the wrappers
LEAVES = ("bm25", "vector", "exact", "sparse", "trigram", "index hybrid", "parent", "sentence window")


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


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tenants.Wrap]:
    """The maker of every retriever that searches by itself."""
    return tenants.leaves(tmp_path_factory.mktemp("leaves") / "index")


class TestLeaves(TestWrappers):
    """LangChain's standard tests, with the maker of a retriever that searches by itself."""

    @pytest.fixture(autouse=True, params=LEAVES)
    def choose(self, request: pytest.FixtureRequest, leaves: dict[str, tenants.Wrap]) -> None:  # type: ignore[override]
        """Take one retriever after the other."""
        self.wrap = leaves[request.param]

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """Nothing: the maker has the documents."""
        return {}
