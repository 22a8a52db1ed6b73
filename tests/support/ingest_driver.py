"""Runs ingests in forked children of one process, so that a run costs no imports and can be killed.

Commands come as JSON lines on stdin, answers go as JSON lines to stdout. Started by ``IngestDriver``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

QUERIES = ["pump temperature", "valve pressure 7", "section three", "阀门压力", "item nine of the list"]


class IngestDriver:
    """The process, seen from a test."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        tests = str(Path(__file__).resolve().parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join([tests, environment.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.ingest_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._ask({"do": "nothing"})

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the driver died"
        return json.loads(answer)

    def run(self, docs: Path, index: Path, *, kill_after: float | None = None, prune: bool = False) -> Any:
        """Ingest; kill -9 after that many seconds. Gives the exit status and the seconds."""
        return self._ask(
            {"do": "ingest", "docs": str(docs), "index": str(index), "kill_after": kill_after, "prune": prune}
        )

    def dump(self, index: Path) -> Any:
        """All that an index holds, finds, and says about itself."""
        return self._ask({"do": "dump", "index": str(index)})["dump"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


def _ingest(command: dict[str, Any]) -> None:
    from rag_kit.indexing import IngestOptions, ingest
    from support.embedding import WordEmbeddings

    report = ingest(
        command["docs"],
        command["index"],
        embeddings=WordEmbeddings(),
        prune=command["prune"],
        options=IngestOptions(chunk_size=300),
    )
    assert [name for name, _ in report.failed] == ["empty.txt"], report.failed


def _dump(command: dict[str, Any]) -> Any:
    from rag_kit.indexing import DocumentIndex
    from support.embedding import WordEmbeddings

    result: dict[str, Any] = {}
    with DocumentIndex.open(command["index"], embeddings=WordEmbeddings()) as index:
        ids = index.ids()
        result["rows"] = [(d.id, d.page_content, d.metadata) for d in index.get(ids)]
        result["vectors"] = index.vectors(ids)
        result["settings"] = index.settings
        result["files"] = {source: record.sha256 for source, record in index.source_records().items()}
        for leg, search in (("dense", index.search_dense), ("keyword", index.search_keyword)):
            result[leg] = [
                [(document.id, round(score, 5)) for document, score in search(query, 10)] for query in QUERIES
            ]
        result["verify"] = str(index.verify())
    return result


def _child(work: Any, command: dict[str, Any], kill_after: float | None) -> dict[str, Any]:
    """Fork, work, and maybe be killed."""
    reading, writing = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            value = work(command)
            with os.fdopen(writing, "w") as pipe:
                json.dump(value, pipe)
            status = 0
        except BaseException:  # noqa: BLE001 - shown, and told by the status
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    if kill_after is not None:
        time.sleep(max(0.0, kill_after - (time.monotonic() - started)))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {
        "status": status,
        "seconds": time.monotonic() - started,
        "dump": json.loads(text) if text and status == 0 else None,
    }


WORK = {"ingest": _ingest, "dump": _dump}


def main() -> None:
    """Warm up, then serve."""
    import filelock  # noqa: F401 - imported once for all children
    import langchain_core.documents  # noqa: F401

    import rag_kit.indexing.bm25
    import rag_kit.indexing.files
    import rag_kit.indexing.ingestion.run as run
    import rag_kit.models.embedding  # noqa: F401
    import support.embedding  # noqa: F401
    from rag_kit.indexing.readers.api import Reader  # noqa: F401
    from rag_kit.indexing.splitting.api import split  # noqa: F401
    from rag_kit.text.analysis import load_segmenter, warm_up

    warm_up()
    load_segmenter()
    run._GROUP = 12  # many commits
    for line in sys.stdin:
        command = json.loads(line)
        work = WORK.get(command["do"])
        answer = {} if work is None else _child(work, command, command.get("kill_after"))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
