"""A process that writes to an index in PostgreSQL, and says on standard output what was acknowledged."""

from __future__ import annotations

import itertools
import sys
import time

from langchain_core.documents import Document

from rag_kit.errors import DocumentIndexError
from rag_kit.indexing import DocumentIndex
from support.embedding import WordEmbeddings


def main() -> None:
    """Write groups of three documents, the middle one of which replaces an earlier one, until the process is killed."""
    url, name = sys.argv[1:]
    index = DocumentIndex.open(url, embeddings=WordEmbeddings(), mode="w")
    for number in itertools.count():
        keys = [f"{name}-{number}", f"{name}-shared-{number % 5}", f"{name}-{number}-b"]
        group = [Document(f"text {number} alpha{number % 7}", id=key) for key in keys]
        while True:
            try:
                index.upsert(group)
                if number % 4 == 3:
                    index.delete([f"{name}-{number - 1}-b"])
                break
            except DocumentIndexError:
                time.sleep(0.05)
        print(number, flush=True)


if __name__ == "__main__":
    main()
