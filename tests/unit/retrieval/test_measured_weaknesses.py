"""Faults measured in LangChain's own retrievers, by the number of the weakness, done right here.

Weaknesses of parts with test files of their own are tested there, under the same kind of name; the last test counts
them all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
ROWS = range(1, 26)


@pytest.mark.slow
def test_row_25_nothing_undeclared_is_needed():
    """Every retriever works where lark, langchain-classic and langchain-community are not installed."""
    code = """
import sys
for name in ("lark", "langchain_classic", "langchain_community"):
    sys.modules[name] = None  # importing it raises
from langchain_core.documents import Document
from rag_kit import retrieval
from rag_kit.query_construction import SelfQueryRetriever
for name in retrieval.__all__:
    getattr(retrieval, name)
found = SelfQueryRetriever.from_rules(
    [Document("old", metadata={"year": 1999}), Document("new", metadata={"year": 2010})]
).invoke("which are new, after 2005?")
assert [doc.page_content for doc in found] == ["new"], found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_row_has_a_test_named_after_it():
    """No measured weakness is without a test here and, where LangChain has the part, one that shows it there."""
    here, there = set(), set()
    for file in TESTS.rglob("test_*.py"):
        rows = {int(row) for row in re.findall(r"def test_row_(\d+)_", file.read_text(encoding="utf-8"))}
        (there if file.parent.name == "comparison" else here).update(rows)
    assert here == set(ROWS)
    assert there == set(ROWS)
