"""``make demo``: build an index of the guide and ask it three questions, through the command line itself."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from rag_kit.cli.main import main
from rag_kit.models.wheels.files import is_installed

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / ".demo" / "index"

#: What is asked, of which graph, and what it shows. The last one shares words with the guide, which does not answer it.
QUESTIONS = (
    ("Which score does reciprocal rank fusion give a passage?", "plain", "in English"),
    (
        "权重为零的检索器会怎么样？",
        "self-rag",
        "in Chinese, to a graph that grades the passages and its own draft",
    ),
    (
        "What is the maximum size in bytes of an index folder on Windows?",
        "plain",
        "not answered by the documents",
    ),
)
#: Pages of the guide that are embedded where e5 is installed.
PAGES = ("en/retrieval", "zh/retrieval")


def run() -> int:
    """Ingest, ask, and return the first exit code that is not 0."""
    start = time.perf_counter()
    shutil.rmtree(INDEX, ignore_errors=True)
    paths = ["docs/guide"]
    if is_installed("e5") and "RAG_KIT_EMBEDDING_MODEL" not in os.environ:
        paths = [f"docs/guide/{page}.md" for page in PAGES]  # all pages take minutes on two cores
    print(f"$ rag-kit ingest {' '.join(paths)} --index .demo/index", flush=True)
    code = main(["ingest", *(str(ROOT / path) for path in paths), "--index", str(INDEX), "--quiet"])
    for question, graph, what in QUESTIONS:
        if code:
            return code
        print(f"\n--- a question {what}", flush=True)
        options = ["-k", "3", "--explain", *([] if graph == "plain" else ["--graph", graph])]
        print(f'$ rag-kit ask "{question}" --index .demo/index {" ".join(options)}', flush=True)
        code = main(["ask", question, "--index", str(INDEX), *options])
    command = os.path.relpath(Path(sys.executable).with_name("rag-kit"), ROOT)
    print(f"\ndone in {time.perf_counter() - start:.0f} s. Ask on: {command} ask --index .demo/index")
    return code


if __name__ == "__main__":
    raise SystemExit(run())
