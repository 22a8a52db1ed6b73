"""No graph says "not in the documents" where not everything could be searched."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from support.graphs import BUILDERS
from support.outages import ANSWERED, OUTAGES, UNANSWERED, words

from rag_kit.graphs import build_plain_rag
from rag_kit.models import chat_model
from rag_kit.text.citations.decline import DECLINED

WAYS = ("sync", "async")
KINDS = ("ensemble", "hybrid", "index hybrid", "multi-query", "HyDE", "self-query")
#: How an answer may say that not everything could be searched.
_SAYS_SO = {"en": r"could not be searched|not everything|not all", "zh": r"未能|没能|无法|没有全部|并非全部"}


def run(graph: Any, question: str, way: str) -> dict[str, Any]:
    """One run of a graph."""
    given = {"question": question}
    result: dict[str, Any] = graph.invoke(given) if way == "sync" else asyncio.run(graph.ainvoke(given))
    return result


def check_incomplete(result: dict[str, Any], part: str, language: str) -> None:
    """The status, the notes and the answer say so."""
    assert result["status"] == "incomplete"
    assert any(re.search(part, note) for note in result["notes"]), result["notes"]
    assert result["answer"] not in DECLINED.values()
    assert re.search(_SAYS_SO[language], result["answer"]), result["answer"]


# each graph and each kind in the fast tier, all pairs of them in the slow one
FAST = {(name, "ensemble") for name in BUILDERS} | {("plain", kind) for kind in KINDS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if (name, kind) in FAST else pytest.mark.slow)
        for name in BUILDERS
        for kind in KINDS
    ],
)
def test_nothing_found_beside_an_outage_is_incomplete(name: str, kind: str, way: str, tmp_path: Path) -> None:
    """In both languages; the notes name what was not searched."""
    graph = BUILDERS[name](OUTAGES[kind].make(tmp_path), chat_model("extractive"))
    for language, question in zip(("en", "zh"), UNANSWERED, strict=True):
        check_incomplete(run(graph, question, way), OUTAGES[kind].part, language)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BUILDERS)
def test_checked_citations_keep_their_status(name: str, way: str, tmp_path: Path) -> None:
    """An answer that holds stays one, with the note."""
    model = chat_model("extractive")
    graph = BUILDERS[name](OUTAGES["ensemble"].make(tmp_path), model)
    for question in ANSWERED:
        whole, result = run(BUILDERS[name](words(), model), question, way), run(graph, question, way)
        assert result["status"] == whole["status"] == "grounded"
        assert result["answer"] == whole["answer"]
        assert any("Down" in note for note in result["notes"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("language", "question"), zip(("en", "zh"), ANSWERED, strict=True))
def test_a_decline_beside_an_outage_is_incomplete(language: str, question: str, way: str) -> None:
    """The model declines on what was found; the answer may lie in what was not searched."""
    model = FakeListChatModel(responses=[DECLINED[language]])
    graph = build_plain_rag(OUTAGES["ensemble"].make(Path()), model)
    check_incomplete(run(graph, question, way), "Down", language)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BUILDERS)
def test_without_an_outage_a_decline_stays_one(name: str, way: str) -> None:
    """Also right after a run that had one."""
    model = chat_model("extractive")
    run(BUILDERS[name](OUTAGES["ensemble"].make(Path()), model), UNANSWERED[0], way)
    for question in UNANSWERED:
        assert run(BUILDERS[name](words(), model), question, way)["status"] == "declined"
