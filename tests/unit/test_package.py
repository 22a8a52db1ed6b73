"""The package as a whole: what importing it costs, and that names hold."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from packaging.specifiers import SpecifierSet

import rag_kit

PUBLIC = {
    "rag_kit.prompts": ["load_prompt"],
    "rag_kit.models": ["chat_model", "embedding_model", "structured_call"],
    "rag_kit.retrieval": ["BM25Retriever", "EnsembleRetriever", "explain"],
    "rag_kit.retrieval.fusion": ["reciprocal_rank_fusion"],
    "rag_kit.indexing": ["read", "register_reader", "split", "BM25Index", "DocumentIndex"],
    "rag_kit.concurrency": ["fan_out", "afan_out"],
    "rag_kit.graphs": ["build_plain_rag"],
}


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        (
            "import rag_kit, rag_kit.retrieval, rag_kit.graphs, rag_kit.models, rag_kit.indexing",
            "langchain langgraph chroma openai",
        ),
        (
            "import rag_kit.documents, rag_kit.concurrency, rag_kit.retrieval.fusion",
            "langchain numpy chromadb pydantic",
        ),
        (
            "from rag_kit.prompts import render_passages; from rag_kit.prompts.library import *; "
            "render_passages(['x']); library = PromptLibrary(); library.read('answer'); "
            "assert check_library(library) == []",
            "langchain langgraph",
        ),
        (
            "import rag_kit.cli.benchmark; from pathlib import Path; from tempfile import mkdtemp; "
            "from rag_kit.evaluation import EvaluationSet, Example; s = EvaluationSet('a', [Example('q', 'x?')]); "
            "assert EvaluationSet.load(s.save(Path(mkdtemp(), 'a.jsonl'))) == s",
            "langchain ragas numpy pandas datasets ir_measures",
        ),
    ],
)
def test_light_layers_stay_light(program: str, heavy: str) -> None:
    """The package, its lowest layers, the names of the others, reading prompts and sets load no LangChain module."""
    listing = (
        f"import sys; print([name for name in sys.modules if name.startswith({tuple(heavy.split())!r})])"
    )
    command = [sys.executable, "-c", f"{program}\n{listing}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_public_names_are_there(module: str) -> None:
    """The public face of the design can be imported, and is listed in __all__."""
    loaded = importlib.import_module(module)
    for name in PUBLIC[module]:
        assert getattr(loaded, name) is not None
        assert name in dir(loaded)


def every_module() -> Iterator[ModuleType]:
    """All modules; those of PostgreSQL and of MCP cannot be imported without their packages."""
    needed = {"rag_kit.indexing.postgres.": "psycopg_pool", "rag_kit.cli.mcp_server": "mcp"}
    lacking = tuple(name for name, package in needed.items() if not importlib.util.find_spec(package))
    for found in pkgutil.walk_packages(rag_kit.__path__, "rag_kit."):
        if not found.name.startswith(lacking):
            yield importlib.import_module(found.name)


def test_every_module_imports_and_every_listed_name_exists() -> None:
    """No module is broken, __all__ promises nothing that is not there, and no module hides a function.

    Importing ``package.name`` sets ``package.name``: a function of the same name would be gone from then on.
    """
    for module in list(every_module()):
        for name in getattr(module, "__all__", ()):
            assert not isinstance(getattr(module, name), ModuleType), f"{module.__name__}.{name}"


@pytest.mark.parametrize(
    ("package", "wanted"),
    [
        ("langchain", ">=1.4,<2"),
        ("langchain-core", ">=1.7,<2"),
        ("langchain-community", ">=0.4.1,<0.4.2"),
        ("langchain-openai", ">=1.7,<2"),
        ("langchain-chroma", ">=1.1,<2"),
        ("langgraph", ">=1.2,<2"),
        ("openai", ">=3.3,<4"),
        ("chromadb", ">=1.5.9,<2"),
        ("rank-bm25", ">=0.2.2,<0.3"),
        ("ragas", "==0.4.3"),
        ("instructor", ">=1.17,<2"),
        ("langgraph-api", ">=0.16"),
    ],
)
def test_versions_that_matter(package: str, wanted: str) -> None:
    """Extras installed together work together; older pips silently downgrade without constraints."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} belongs to an extra that is not installed")
    assert version in SpecifierSet(wanted, prereleases=True)
