"""``make demo-postgres``: the guide in PostgreSQL, asked through the command line, and two tenants of one index."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.postgres import PostgresServer  # noqa: E402 - found by the line above

from rag_kit.cli.main import main  # noqa: E402

URL = "postgresql://app@/app"
QUESTION = "Which score does reciprocal rank fusion give a passage?"
#: What two customers keep in the same tables.
NOTES = {
    "ann": "The code of the safe is kept by Ann's sister.",
    "bob": "The code of the safe is under Bob's doormat.",
}


def run() -> int:
    """Start a server, ingest, ask, show tenants, stop it; the first exit code that is not 0."""
    start = time.perf_counter()
    os.chdir(ROOT)
    with PostgresServer() as server:
        database(server)
        print(
            f"a PostgreSQL server with pgvector runs until this demo ends\n\n$ export PGHOST={os.environ['PGHOST']}"
        )
        code = (
            call("ingest", "docs/guide", "--index", URL, "--quiet")
            or call("ask", QUESTION, "--index", URL, "-k", "3", "--explain")
            or tenants()
            or call("verify", "--index", URL)
        )
    print(f"\ndone in {time.perf_counter() - start:.0f} s; the server is stopped and its files are removed")
    return code


def database(server: PostgresServer) -> None:
    """Make a database for an ordinary role: what separates tenants binds all but superusers."""
    os.environ["PGHOST"] = server.url.partition("host=")[2]
    with psycopg.connect("postgresql://tester@/postgres", autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN")
        connection.execute("CREATE DATABASE app OWNER app")
    with psycopg.connect("postgresql://tester@/app", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")


def tenants() -> int:
    """Two tenants write into one index; each finds its own, though no search names a filter."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, note in NOTES.items():
            Path(f"{name}.md").write_text(note, encoding="utf-8")
            if code := call("ingest", f"{name}.md", "--index", f"{URL}?index=notes&tenant={name}", "--quiet"):
                return code
    for name in NOTES:
        index = f"{URL}?index=notes&tenant={name}"
        if code := call("retrieve", "Where is the code of the safe?", "--index", index):
            return code
    return 0


def call(*arguments: str) -> int:
    """Run a command of ``rag-kit``, and print it before."""
    words = (f'"{word}"' if any(sign in word for sign in " ?&") else word for word in arguments)
    print(f"\n$ rag-kit {' '.join(words)}", flush=True)
    return main(list(arguments))


if __name__ == "__main__":
    raise SystemExit(run())
