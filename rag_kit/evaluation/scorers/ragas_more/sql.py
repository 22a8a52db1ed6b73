"""SQL equivalence: would the pipeline's query and the expected one give the same result?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric
from rag_kit.evaluation.scorers.table_text import unfence

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Calls
    from rag_kit.evaluation.outputs import Output


class SqlEquivalence(JudgedMetric):
    """Ragas's ``SQLSemanticEquivalence``: 1 where the judge takes both queries for the same, else 0.

    The expected query is the reference; ``metadata["schema"]`` (text, a list of texts, or table -> columns) says what
    the tables hold. No query is run. A code fence around a query is taken off.
    """

    name = "sql_equivalence"
    stage = "agent"
    example_needs = frozenset({"reference"})
    prompts = ("judge_sql",)

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """See that there is something to compare."""
        _schema(example)
        for what, text in (("reference", example.reference), ("answer", output.answer)):
            if not unfence(text or "").strip():
                return Cell.undefined(f"the {what} holds no query")
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm
        from rag_kit.evaluation.judge.calls import Call

        metric = ragas.SQLSemanticEquivalence(llm=ragas_llm(calls))
        metric.equivalence_prompt = FilePrompt(
            lambda data: Call(
                "judge_sql",
                {
                    "reference": data.reference,
                    "response": data.response,
                    "database_schema": data.database_schema,
                },
            )
        )
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Both queries, and the schema as Ragas's reference contexts."""
        return {
            "response": unfence(output.answer or ""),
            "reference": unfence(example.reference or ""),
            "reference_contexts": _schema(example),
        }

    def details(self, calls: Calls) -> dict[str, Any]:
        """What the judge said of each query."""
        return {
            name: reply[name]
            for reply in calls.seen("judge_sql")
            for name in ("response_explanation", "reference_explanation")
        }

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """What the answer's query does."""
        return str(self.details(calls).get("response_explanation", ""))


def _schema(example: Example) -> list[str]:
    """``metadata["schema"]`` as texts.

    Raises:
        InvalidInputError: If it is neither text, texts, nor tables with columns.
    """
    schema = example.metadata.get("schema")
    if schema is None:
        return []
    if isinstance(schema, str):
        return [schema]
    if isinstance(schema, Mapping):
        return [f"{table}: {json.dumps(columns, ensure_ascii=False)}" for table, columns in schema.items()]
    if isinstance(schema, Sequence) and all(isinstance(text, str) for text in schema):
        return list(schema)
    raise InvalidInputError(
        f"metadata['schema'] is {schema!r:.80}; give a text, a list of texts, or tables with their columns"
    )
