"""The embedded model: what sorting by length and a bound on the tokens of a batch gain over plain batches.

Peers in one process over the same texts and session settings; the vectors are the same to 1e-5. The texts are
made here, with the spread of lengths that chunks of real documents have: many short, some at the limit.
"""

from __future__ import annotations

import random

from harness import Row, at_least, interleaved, median_ratio

from rag_kit.models.wheels import engine
from rag_kit.models.wheels.embeddings import WheelEmbeddings
from rag_kit.models.wheels.files import is_installed

WORDS = (
    "retrieval finds passages that answer a question and generation writes an answer from them with citations "
    "while rankers fuse keyword and vector search over an index of chunks with metadata filters and scores"
)


def texts(number: int) -> list[str]:
    """Texts of 5 to 250 words, log-normally spread, always the same."""
    chance = random.Random(0)
    words = WORDS.split()
    lengths = [min(250, max(5, round(chance.lognormvariate(4.0, 0.9)))) for _ in range(number)]
    return [" ".join(chance.choices(words, k=length)) for length in lengths]


def run(quick: bool = False) -> list[Row]:
    """Time the kit's batches against plain ones, in turn."""
    if not is_installed("minilm"):
        return [Row("minilm: length-sorted batches", 1.0, "skipped", True, "rag-kit models install minilm")]
    sample = texts(64 if quick else 192)
    kit = WheelEmbeddings("minilm")
    by_length = sorted(sample, key=len)

    def plain() -> None:
        limit, engine.BATCH_TOKENS = engine.BATCH_TOKENS, 1_000_000
        for start in range(0, len(by_length), 16):
            kit.embed_array(by_length[start : start + 16])
        engine.BATCH_TOKENS = limit

    functions = {"kit": lambda: kit.embed_array(sample), "by length": plain}
    times = interleaved(functions, repeats=3 if quick else 5)
    note = f"{len(sample)} texts"
    return [
        at_least(
            "minilm: batches of 16 sorted by length / the kit",
            median_ratio(times, "by length", "kit"),
            1.0,
            note,
        ),
    ]
