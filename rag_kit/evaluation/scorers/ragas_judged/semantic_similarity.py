"""Semantic similarity: the cosine of answer and reference."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.calls import Calls
from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output


class SemanticSimilarity(RagasMetric):
    """Ragas's ``SemanticSimilarity``: the cosine of the two texts' vectors, from -1 to 1; no chat model is asked.

    Ragas embeds without awaiting; here both vectors are fetched before, in one request, so the event loop never waits.
    """

    name = "semantic_similarity"
    stage = "end_to_end"
    example_needs = frozenset({"reference"})
    needs_judge = False
    needs_embeddings = True
    low = -1.0

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Both vectors."""
        await calls.embed([example.reference or " ", output.answer or " "])
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import ragas_embeddings

        return ragas.SemanticSimilarity(embeddings=ragas_embeddings(calls))

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Reference and answer."""
        return {"reference": example.reference, "response": output.answer}
