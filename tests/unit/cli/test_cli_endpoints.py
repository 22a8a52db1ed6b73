"""Model endpoints that do not answer, or refuse the key: one line, an exit code of its own, no key shown."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import run_command
from support.openai_server import OpenAIServer, Reply, hang, reset, stall, text

from rag_kit.cli import exits
from rag_kit.cli.main import main

KEY = "sk-canary-0123456789abcdef"
OTHER_KEY = "sk-canary-fedcba9876543210"
MODEL = "openai:test-embedding"


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """A server that takes one key."""
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture(scope="module")
def written(server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose vectors came from the server; no test changes it."""
    base = tmp_path_factory.mktemp("endpoints")
    (base / "docs").mkdir()
    (base / "docs" / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    arguments = ["ingest", base / "docs", "--index", base / "index", "--embedding-model", MODEL, "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("RAG_KIT_EMBEDDING_BASE_URL", server.url)
        assert main([str(argument) for argument in arguments]) == exits.OK
    return base / "index"


@pytest.fixture
def index(written: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The index, with a model that is asked once."""
    monkeypatch.setattr("rag_kit.models.embedding.RETRIES", 0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BASE_URL", server.url)
    return written


@pytest.fixture
def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code, out, err = run_command(capsys, *arguments)
    assert KEY not in out + err and OTHER_KEY not in out + err
    assert "Traceback" not in out + err
    return code, out, err


QUESTION = "When does the pump start?"


@pytest.mark.parametrize("command", ["ask", "retrieve"])
@pytest.mark.parametrize("pipeline", ["hybrid", "dense"])
def test_an_embedding_endpoint_that_refuses_the_key_stops_the_command(
    index: Path,
    server: OpenAIServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    pipeline: str,
) -> None:
    """It is one line with the endpoint's address and the exit code of a refused key, not a worse answer."""
    monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
    code, _, err = run(capsys, command, QUESTION, "--index", index, "--pipeline", pipeline)
    lines = [line for line in err.splitlines() if line.startswith("rag-kit: ")]
    assert code == exits.UNAUTHORIZED and len(lines) == 1, err
    assert server.url.removesuffix("/v1") in lines[0] and "refused the key" in lines[0]


@pytest.mark.parametrize("command", ["ask", "retrieve"])
def test_an_embedding_endpoint_that_does_not_answer_stops_the_command(
    index: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    closed_port: int,
    command: str,
) -> None:
    """The line names scheme, host and port; user and password of the address are left out."""
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BASE_URL", f"http://127.0.0.1:{closed_port}/v1")
    code, _, err = run(capsys, command, QUESTION, "--index", index)
    lines = [line for line in err.splitlines() if line.startswith("rag-kit: ")]
    assert code == exits.UNREACHABLE and len(lines) == 1, err
    assert f"embedding endpoint at http://127.0.0.1:{closed_port} could not be reached" in lines[0]
    assert "Check that it runs, and RAG_KIT_EMBEDDING_BASE_URL " in lines[0]


@pytest.mark.parametrize("pipeline", ["hybrid", "dense"])
def test_an_embedding_endpoint_is_asked_again_by_its_client_alone(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pipeline: str
) -> None:
    """The graph around it does not repeat what the client has repeated; here that is set to nothing."""
    with OpenAIServer(key=KEY, embeddings=[reset()]) as gone:
        monkeypatch.setenv("RAG_KIT_EMBEDDING_BASE_URL", gone.url)
        code, _, err = run(capsys, "ask", QUESTION, "--index", index, "--pipeline", pipeline)
        assert code == exits.UNREACHABLE, err
        assert len(gone.requests) == 1


@pytest.mark.parametrize("command", ["ask", "retrieve"])
def test_keyword_search_alone_only_when_it_is_allowed(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """--allow-degraded answers from keyword search and says what failed."""
    monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
    code, out, err = run(capsys, command, QUESTION, "--index", index, "--allow-degraded", "--json")
    assert code == exits.OK, err
    assert "40 degrees" in out and "degraded" in out


def test_doctor_asks_the_embedding_endpoint(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """doctor tells an endpoint that answers from one that does not, and can leave it alone."""
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", MODEL)
    code, out, _ = run(capsys, "doctor")
    assert code == exits.OK and "it answers, 16 dimensions" in out
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BASE_URL", f"http://127.0.0.1:{closed_port}/v1")
    code, out, _ = run(capsys, "doctor")
    assert code == exits.FAILED and f"http://127.0.0.1:{closed_port} " in out
    assert run(capsys, "doctor", "--no-network")[0] == exits.OK


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_doctor_does_not_call_an_empty_reply_ok(
    empty: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is sent by the check of the configuration, nor by that of one model."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer([text(empty)]) as server:
        for asked in (["--model", "openai:m"], []):
            monkeypatch.setenv("RAG_KIT_CHAT_MODEL", "openai:m")
            code, out, _ = run(capsys, "doctor", "--base-url", server.url, *asked)
            assert code == exits.FAILED and "gives an empty reply" in out


def test_the_recorded_model_is_found_again_at_its_host(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No flag or variable has to name the model; another host is refused with what to set."""
    for named in ([], ["--embedding-model", MODEL], ["--embedding-model", f"{MODEL}@127.0.0.1"]):
        code, out, err = run(capsys, "retrieve", QUESTION, "--index", index, "--explain", *named)
        assert code == exits.OK and "dense" in out, err
        code, out, err = run(capsys, "ingest", index.parent / "docs", "--index", index, *named)
        assert code == exits.OK and "1 unchanged" in out, err
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BASE_URL", "http://localhost:9/v1")
    code, _, err = run(capsys, "retrieve", QUESTION, "--index", index)
    assert code == exits.MISMATCH and "RAG_KIT_EMBEDDING_BASE_URL" in err and "127.0.0.1" in err


def test_the_assemblies_for_studio_find_the_recorded_model(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded name holds the host, which is no part of the model's name."""
    parts = pytest.importorskip("graphs.parts", reason="the assemblies for Studio are not in the wheel")

    monkeypatch.setenv("RAG_KIT_INDEX", str(index))
    [found] = parts.retriever.__wrapped__().invoke(QUESTION)
    assert "40 degrees" in found.page_content


def test_keyword_search_needs_no_embedding_model(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--pipeline bm25 works without the key of the embedding model."""
    monkeypatch.delenv("OPENAI_API_KEY")
    assert run(capsys, "retrieve", QUESTION, "--index", index, "--pipeline", "bm25")[0] == exits.OK
    code, _, err = run(capsys, "retrieve", QUESTION, "--index", index)
    assert code == exits.USAGE and "OPENAI_API_KEY" in err


@pytest.mark.parametrize("named", [[], ["--embedding-model", "none"]])
def test_a_missing_model_of_the_index_is_named_with_the_ways_out(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: list[str]
) -> None:
    """Without its key, or given away, it is this index's model; with --allow-degraded it is searched by keyword."""
    monkeypatch.delenv("OPENAI_API_KEY")
    asked = QUESTION, "--index", index, *named
    for pipeline in ("hybrid", "dense"):
        code, _, err = run(capsys, "ask", *asked, "--pipeline", pipeline)
        assert code == exits.USAGE and err.count("rag-kit: ") == 1
        assert f"The embedding model of this index is '{MODEL}@127.0.0.1'" in err
        assert "--pipeline bm25" in err and "--allow-degraded" in err
        assert "api_key" not in err and "PROVIDER:MODEL" not in err and "DocumentIndex" not in err
    for command in ("ask", "retrieve"):
        code, out, err = run(capsys, command, *asked, "--allow-degraded", "--json")
        assert code == exits.OK, err
        assert "40 degrees" in out and "opened without its embedding model" in out
        assert "The embedding model of this index is" in err and "--pipeline" not in err
    other = "--embedding-model", "openai:another", "--pipeline", "bm25"
    code, _, err = run(capsys, "retrieve", QUESTION, "--index", index, *other)
    assert code == exits.USAGE and "'openai:another' needs a key" in err and "of this index" not in err


@pytest.mark.parametrize("command", ["ask", "doctor", "retrieve"])
def test_a_traceback_for_debugging_holds_no_key(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """RAG_KIT_DEBUG=1 shows where it failed, with the keys that the server echoed masked."""
    monkeypatch.setenv("RAG_KIT_DEBUG", "1")
    monkeypatch.setenv("SOME_API_KEY", "zq81kxplain7731")

    def fail(*arguments: Any) -> None:
        raise ValueError(f"401 for Bearer {KEY} and zq81kxplain7731")

    monkeypatch.setattr(f"rag_kit.cli.{command}.run", fail)
    capsys.readouterr()
    assert (
        main([command, *([QUESTION, "--index", str(index)] if command != "doctor" else [])]) == exits.FAILED
    )
    err = capsys.readouterr().err
    assert "Traceback" in err and "in fail" in err and "401 for Bearer ***" in err
    assert KEY not in err and "zq81kxplain7731" not in err


@pytest.mark.parametrize(
    ("reply", "extra"),
    [
        pytest.param(hang(300), [], marks=pytest.mark.slow, id="silent"),
        pytest.param(hang(300), ["--json"], marks=pytest.mark.slow, id="silent, json"),
        pytest.param(stall("The pump starts at 40 degrees [1].", 300), [], id="stalled"),
    ],
)
def test_a_server_that_hangs_ends_with_the_deadline(
    index: Path, capsys: pytest.CaptureFixture[str], reply: Reply, extra: list[str]
) -> None:
    """One that accepts and says nothing, and one that stops within its answer: the cap is named as it was given."""
    with OpenAIServer([reply]) as silent:
        chat = ["--model", "openai:m", "--base-url", silent.url, "--deadline", "3"]
        code, _, err = run(capsys, "ask", QUESTION, "--index", index, "--pipeline", "bm25", *chat, *extra)
    assert code == exits.BUDGET and "deadline=3 s" in err


@pytest.mark.slow
def test_a_name_server_that_hangs_does_not_hold_the_end(index: Path) -> None:
    """The thread that looks a name up cannot be interrupted; neither the loop nor the process waits for it."""
    program = (
        "import socket, sys, time\n"
        "socket.getaddrinfo = lambda *a, **k: time.sleep(3000)\n"
        "from rag_kit.cli.main import main\n"
        "raise SystemExit(main(sys.argv[1:]))\n"
    )
    chat = ["--model", "openai:m", "--base-url", "http://model.example/v1", "--deadline", "5"]
    arguments = ["ask", QUESTION, "--index", str(index), "--pipeline", "bm25", *chat]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == exits.BUDGET and "deadline=5 s" in done.stderr


def test_the_graph_of_an_evaluation_asks_the_endpoint_that_is_named(
    server: OpenAIServer, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`evaluate --graph --model --base-url`, as `ask` does."""
    (tmp_path / "set.jsonl").write_text('{"question": "When does it start?", "answers": ["40 degrees"]}\n')
    chat = ["--graph", "plain", "--model", "openai:m", "--base-url"]
    searched = ["evaluate", tmp_path / "set.jsonl", "--index", index, "--pipeline", "bm25", "--json"]
    with OpenAIServer(["The pump starts at 40 degrees [1]."], key=KEY) as model:
        code, out, _ = run(capsys, *searched, *chat, model.url)
    assert code == exits.OK and len(model.chats) == 1 and '"rows": 1' in out
    code, _, err = run(
        capsys, "evaluate", tmp_path / "set.jsonl", "--pipeline", "a:b", "--base-url", "http://x"
    )
    assert code == exits.USAGE and "no index is named" in err
