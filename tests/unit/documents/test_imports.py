from __future__ import annotations

import subprocess
import sys


def test_the_lowest_layers_import_no_langchain() -> None:
    """documents, concurrency and the names of retrieval cost no LangChain import."""
    code = (
        "import sys, rag_kit.documents, rag_kit.concurrency, rag_kit.retrieval, rag_kit.retrieval.fusion\n"
        "print(sorted(m for m in sys.modules if m.startswith(('langchain', 'numpy', 'chromadb', 'pydantic'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
