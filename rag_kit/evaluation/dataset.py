"""Retrieval data sets: a corpus, questions, which documents are relevant, and gold answers, as one set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet


def load_dataset(folder: Path | str, *, split: str = "test") -> EvaluationSet:
    """Read and check a data set in BEIR's layout, with ``qa.jsonl`` where there is one.

    The documents are the set's corpus: title, a newline, text. Grades, accepted answers and the places where they
    stand (all of them: any one will do) are in the examples.

    Args:
        folder: Folder with ``corpus.jsonl``, ``queries.jsonl`` (both also ``.gz``) and ``qrels.tsv`` or
            ``qrels/<split>.tsv``; ``qa.jsonl`` holds ``id``, ``answers``, ``doc_ids`` and ``answer_starts``.
        split: Which file of ``qrels/`` to read where the set has that folder and no ``qrels.tsv``.

    Raises:
        InvalidInputError: If a file is missing, empty or malformed (named by file and line), if an id
            occurs twice, or if a relevance judgement or gold answer names an unknown document or query.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as name:
        ...     folder = Path(name)
        ...     _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Tides", "text": "Moon."}')
        ...     _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "What moves the sea?"}')
        ...     _ = (folder / "qrels.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1\\n")
        ...     dataset = load_dataset(folder)
        >>> dataset["q1"].relevant, dataset.corpus[0].text
        ({'d1': 1}, 'Tides\\nMoon.')
    """
    return EvaluationSet.from_beir(folder, split=split)


def qrels(examples: Iterable[Example]) -> dict[str, dict[str, int]]:
    """Id -> document id -> grade, for the examples with a relevant document; only these can be scored.

    Example:
        >>> qrels([Example("q1", "Tides?", relevant={"d1": 1}), Example("q2", "Lamps?", relevant={"d1": 0})])
        {'q1': {'d1': 1}}
    """
    return {
        example.id: dict(example.relevant)
        for example in examples
        if any(grade > 0 for grade in example.relevant.values())
    }
