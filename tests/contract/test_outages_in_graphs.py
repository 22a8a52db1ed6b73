"""No graph says "not in the documents" where not everything could be searched."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from support.graphs import BUILDERS
from support.outages import OUTAGES, UNANSWERED

from rag_kit.models import chat_model
from rag_kit.text.citations.decline import DECLINED

WAYS = ("sync", "async")
KINDS = ("ensemble", "hybrid", "index hybrid", "multi-query", "HyDE", "self-query")
#: How an answer may say that not everything could be searched.
_SAYS_SO = {"en": r"could not be searched|not everything|not all", "zh": r"未能|没能|无法|没有全部|并非全部"}


# each kind in the fast tier, all pairs of them with graphs in the slow one
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if name == "plain" else pytest.mark.slow)
        for name in BUILDERS
        for kind in KINDS
    ],
)
def test_nothing_found_beside_an_outage_is_incomplete(name: str, kind: str, way: str, tmp_path: Path) -> None:
    """In both languages the status, the notes and the answer say what was not searched."""
    graph: Any = BUILDERS[name](OUTAGES[kind].make(tmp_path), chat_model("extractive"))
    for language, question in zip(("en", "zh"), UNANSWERED, strict=True):
        given = {"question": question}
        result = graph.invoke(given) if way == "sync" else asyncio.run(graph.ainvoke(given))
        assert result["status"] == "incomplete" and result["answer"] not in DECLINED.values()
        assert any(re.search(OUTAGES[kind].part, note) for note in result["notes"]), result["notes"]
        assert re.search(_SAYS_SO[language], result["answer"]), result["answer"]
