"""The tool calls of an agent beside the expected ones, by Ragas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import ragas_version
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ragas_more.classes import Lazy, ascore, cell
from rag_kit.evaluation.scorers.ragas_more.messages import ragas_calls, ragas_messages
from rag_kit.evaluation.scorers.tool_messages import calls_made, read_calls

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output


class RagasTools(Metric):
    """Base: one of Ragas's classes on the messages and ``metadata["reference_tool_calls"]``."""

    source: ClassVar[Source] = "ragas"
    stage: ClassVar[Stage] = "agent"
    metadata_needs = frozenset({"reference_tool_calls"})
    output_needs = frozenset({"messages"})

    def __init__(self, name: str, build: Callable[[ModuleType], Any], settings: Mapping[str, Any]) -> None:
        self.name = name
        self._ragas = Lazy(f"the metric {name!r}", build)
        self._settings = {"ragas": ragas_version(), **settings}

    def settings(self) -> dict[str, Any]:
        """Ragas's version and what its class was made with."""
        return dict(self._settings)

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ragas's value."""
        expected = read_calls(example.metadata["reference_tool_calls"], "the reference")
        made = calls_made(output.messages)
        result = await ascore(
            await self._ragas.get(),
            user_input=ragas_messages(output.messages),
            reference_tool_calls=ragas_calls(expected),
        )
        return self._cell(result, len(made), len(expected))

    def _cell(self, result: Any, made: int, expected: int) -> Cell:
        return cell(result, f"{made} calls made, {expected} expected", made=made, expected=expected)


class ToolCallAccuracy(RagasTools):
    """Share of the expected arguments that the calls have, when the same tools were called; else 0.

    What Ragas 0.4.3 does, and its page does not say: a call too many or too few makes it 0; further arguments cost
    nothing; values are compared as text, so that 1 is "1" but not 1.0; and with ``strict_order=False`` calls of one
    tool are paired by the order of their arguments' texts, not by what fits best.

    Args:
        strict_order: Whether the calls must come in the expected order.
    """

    def __init__(self, *, strict_order: bool = True, name: str = "tool_call_accuracy") -> None:
        settings = {"strict_order": bool(strict_order)}
        super().__init__(name, lambda ragas: ragas.ToolCallAccuracy(**settings), settings)


class ToolCallF1(RagasTools):
    """Harmonic mean of the shares of made calls that were expected and of expected calls that were made.

    A call counts when name and arguments are the same. Ragas 0.4.3 compares sets: the same call made ten times is
    one (`ours_tool_call_f1` counts it ten times). Without a call on either side Ragas gives 0; here it is undefined.
    """

    def __init__(self, *, name: str = "tool_call_f1") -> None:
        super().__init__(name, lambda ragas: ragas.ToolCallF1(), {})

    def _cell(self, result: Any, made: int, expected: int) -> Cell:
        if not made and not expected:
            return Cell.undefined("no call was made, and none was expected")
        return super()._cell(result, made, expected)


def tool_call_accuracy(name: str) -> ToolCallAccuracy:
    """In strict order, unless the name says flexible."""
    return ToolCallAccuracy(strict_order=not name.endswith("_flexible"), name=name)


def tool_call_f1(name: str) -> ToolCallF1:
    """Ragas's F1 of tool calls."""
    return ToolCallF1(name=name)
