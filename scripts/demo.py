"""``make demo``: build an index of the guide and ask it three questions, through the command line itself."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from rag_kit.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / ".demo" / "index"

#: What is asked, and what it shows. The last one shares words with the guide, but the guide does not answer it.
QUESTIONS = {
    "Which score does reciprocal rank fusion give a passage?": "in English",
    "权重为零的检索器会怎么样？": "in Chinese",
    "What is the maximum size in bytes of an index folder on Windows?": "not answered by the documents",
}


def run() -> int:
    """Ingest, ask, and return the first exit code that is not 0."""
    start = time.perf_counter()
    shutil.rmtree(INDEX, ignore_errors=True)
    print("$ rag-kit ingest docs/guide --index .demo/index")
    code = main(["ingest", str(ROOT / "docs" / "guide"), "--index", str(INDEX), "--quiet"])
    for question, what in QUESTIONS.items():
        if code:
            return code
        print(f"\n--- a question {what}", flush=True)
        print(f'$ rag-kit ask "{question}" --index .demo/index --explain', flush=True)
        code = main(["ask", question, "--index", str(INDEX), "-k", "3", "--explain"])
    print(
        f"\ndone in {time.perf_counter() - start:.0f} s; the index is in .demo/index, ask it what you like:"
    )
    print(
        f'  {os.path.relpath(Path(sys.executable).with_name("rag-kit"), ROOT)} ask "..." --index .demo/index'
    )
    return code


if __name__ == "__main__":
    raise SystemExit(run())
