"""The embedded model: what sorting by length gains over batches in the order of arrival.

Peers in one process over the same texts and session settings; the vectors are the same to 1e-5. The texts are
made here, with the spread of lengths that chunks of real documents have: many short, some at the limit.
"""

from __future__ import annotations

import random

from harness import Row, at_least, interleaved, median_ratio

from rag_kit.models.minilm import MiniLMEmbeddings, is_installed

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
    """Time both orders of batches, in turn."""
    if not is_installed():
        return [Row("minilm: length-sorted batches", 1.0, "skipped", True, "rag-kit models install minilm")]
    sample = texts(96 if quick else 256)
    in_order = MiniLMEmbeddings(sort=False)
    by_length = MiniLMEmbeddings()
    one_by_one = MiniLMEmbeddings(batch_size=1)
    functions = {
        "in order": lambda: in_order.embed_array(sample),
        "sorted": lambda: by_length.embed_array(sample),
        "one by one": lambda: one_by_one.embed_array(sample),
    }
    times = interleaved(functions, repeats=3 if quick else 7)
    return [
        at_least(
            "minilm: batches in order of arrival / sorted by length",
            median_ratio(times, "in order", "sorted"),
            1.3,
            f"{len(sample)} texts, batches of {by_length.batch_size}",
        ),
        at_least(
            "minilm: one text at a time / sorted batches",
            median_ratio(times, "one by one", "sorted"),
            0.9,
            "batches cost nothing",
        ),
    ]
