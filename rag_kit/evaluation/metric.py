"""Metrics: a name, what it reads, and a way to a cell. Whatever fails becomes a cell, never a number."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rag_kit._redact import error_text, redact
from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import BudgetExceededError, MissingExtraError, RagKitError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.cells import Stage as Stage
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge

#: Who computes the value: Ragas's class, ir-measures, or this kit (such a name begins with ``ours_``).
Source = Literal["ragas", "ir_measures", "ours"]


class Metric:
    """Base of all metrics: subclasses set the class attributes and write ``score``.

    Attributes:
        name: Its name in tables and files.
        source: Who computes it.
        stage: Which part of the pipeline it judges.
        example_needs: Fields of the example that must not be empty, and keys that its metadata must have, as
            ``metadata.key``.
        example_any: Such fields and keys of which one must be there.
        output_needs: Fields of the output that must be there.
        needs_judge: Whether it asks the judge's chat model.
        needs_embeddings: Whether it asks the judge's embedding model.
        skips_declined: Whether it has no value for an answer that declines, as one that judges statements.
        low: Smallest possible value.
        high: Greatest possible value.
        higher_is_better: False for rates of errors.

    Example:
        >>> class Short(Metric):
        ...     name, source, stage = "ours_short", "ours", "generation"
        ...     async def score(self, example, output, judge):
        ...         return Cell.ok(float(len(output.answer) < 10))
    """

    name: str
    source: Source
    stage: Stage
    example_needs: frozenset[str] = frozenset()
    example_any: frozenset[str] = frozenset()
    output_needs: frozenset[str] = frozenset({"answer"})
    needs_judge: bool = False
    needs_embeddings: bool = False
    skips_declined: bool = False
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Compute the cell; may raise. ``judge`` is given if ``needs_judge`` or ``needs_embeddings`` is true."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide the value beside the judge, as plain JSON: versions, prompt hashes.

        A result is taken up again only while this, the judge's fingerprint, the example and the output are the same.
        """
        return {}

    def describe(self) -> dict[str, Any]:
        """Describe the metric as plain JSON, for tables and comparisons."""
        names = ("name", "source", "stage", "low", "high", "higher_is_better", "skips_declined")
        record = {name: getattr(self, name) for name in names}
        return record | {"asks_judge": self.needs_judge or self.needs_embeddings, "settings": self.settings()}

    async def measure(self, example: Example, output: Output, judge: Judge | None = None) -> Cell:
        """Compute the cell for one question: check what it needs, count what it takes, turn exceptions into errors.

        A cap of the whole run that is reached (`BudgetExceededError`) is raised on: the run ends, and what is missing
        is computed when it is taken up again.
        """
        if missing := self._explain_missing(example, output, judge):
            return missing
        if self.skips_declined and output.declined:
            return Cell.undefined("the answer declines: it states nothing")
        budget = Budget()
        started = time.perf_counter()
        try:
            with use_budget(budget):
                cell = self._check_range(await self.score(example, output, judge))
        except (BudgetExceededError, MissingExtraError):
            raise
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise  # the run was cancelled, not something within the metric
            cell = Cell.error(redact(str(error)) if isinstance(error, RagKitError) else error_text(error))
        seconds = time.perf_counter() - started
        return replace(cell, calls=budget.calls, tokens=budget.tokens, seconds=seconds)

    def _explain_missing(self, example: Example, output: Output, judge: Judge | None) -> Cell | None:
        """Return a cell that says what a score would need and is missing; ``None`` if nothing is."""
        if output.error is not None:
            return Cell.error(f"the pipeline failed: {output.error}")
        lacks = example.missing(self.example_needs)
        missing = [f"the example has no {name}" for name in lacks]
        if "answers" in lacks and example.reference:
            missing.append("the column of its reference can be read as answers: columns={'answers': ...}")
        if self.example_any and len(example.missing(self.example_any)) == len(self.example_any):
            missing.append(f"the example has neither {' nor '.join(sorted(self.example_any))}")
        missing += [f"the pipeline gave no {name}" for name in output.missing(self.output_needs)]
        if judge is None and (self.needs_judge or self.needs_embeddings):
            judge_example = "Judge('openai:...')" if self.needs_judge else "Judge('none', 'minilm')"
            missing.append(
                f"no judge was given; it needs a model: judge={judge_example}, or Judge() for the configured ones"
            )
        elif self.needs_judge and getattr(judge, "llm", judge) is None:  # one's own class may lack llm
            missing.append("the judge has no chat model; give Judge(llm) one, or set RAG_KIT_CHAT_MODEL")
        return Cell.not_applicable("; ".join(missing)) if missing else None

    def _check_range(self, cell: Any) -> Cell:
        """Return the cell; instead of one whose value is outside the metric's range, an error."""
        if not isinstance(cell, Cell):
            return Cell.error(f"score gave a {type(cell).__name__}; give a Cell, such as Cell.ok(0.5)")
        tolerance = 1e-9  # of floating-point sums
        if cell.value is None or self.low - tolerance <= cell.value <= self.high + tolerance:
            return cell
        outside = f"the value {cell.value!r} is outside {self.low:g} to {self.high:g}"
        return Cell.error(outside, **dict(cell.details))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
