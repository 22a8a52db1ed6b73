"""The tool calls of an agent beside the expected ones: each call counts, values are compared by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.tool_messages import ToolUse, calls_made, read_calls
from rag_kit.text import fold

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

_MOST_CALLS = 500
_DEPTH = 32


class OursToolCallF1(Metric):
    """Harmonic mean of the shares of made calls that were expected and of expected calls that were made.

    Beside Ragas's `tool_call_f1`: a call made ten times is ten calls; 1 is 1.0 but not "1" and not true; texts are
    compared without case, width and outer spaces.
    """

    source: ClassVar[Source] = "ours"
    stage: ClassVar[Stage] = "agent"
    metadata_needs = frozenset({"reference_tool_calls"})
    output_needs = frozenset({"messages"})

    def __init__(self, *, name: str = "ours_tool_call_f1") -> None:
        self.name = name

    def settings(self) -> dict[str, Any]:
        """The version of the rules."""
        return {"version": 1}

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value with its counts; undefined where no call was made and none expected."""
        made = calls_made(output.messages)
        expected = read_calls(example.metadata["reference_tool_calls"], "the reference")
        if not made and not expected:
            return Cell.undefined("no call was made, and none was expected")
        if max(len(made), len(expected)) > _MOST_CALLS:
            raise InvalidInputError(
                f"there are {len(made):,} calls made and {len(expected):,} expected; {self.name} compares at most "
                f"{_MOST_CALLS}"
            )
        left = list(expected)
        for call in made:
            found = next((n for n, other in enumerate(left) if _same_call(call, other)), None)
            if found is not None:
                del left[found]
        right = len(expected) - len(left)
        details = {"right": right, "made": len(made), "expected": len(expected)}
        return Cell.ok(
            2 * right / (len(made) + len(expected)),
            f"{right} right of {len(made)} calls made and {len(expected)} expected",
            **details,
        )


def same(first: Any, second: Any, depth: int = _DEPTH) -> bool:
    """Whether two JSON values are the same: numbers by value, texts folded, lists in order, objects in any.

    Raises:
        InvalidInputError: If they are nested deeper than 32 levels.

    Example:
        >>> same({"n": 1, "city": "北京"}, {"city": " 北京", "n": 1.0}), same(1, "1"), same(1, True)
        (True, False, False)
    """
    if depth == 0:
        raise InvalidInputError(f"the arguments of a tool call are nested deeper than {_DEPTH} levels")
    if isinstance(first, str) and isinstance(second, str):
        return fold(first).strip() == fold(second).strip()
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(first[k], second[k], depth - 1) for k in first)
    if _is_list(first) and _is_list(second):
        return len(first) == len(second) and all(
            same(a, b, depth - 1) for a, b in zip(first, second, strict=True)
        )
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first == second
    return first is None and second is None


def _same_call(made: ToolUse, expected: ToolUse) -> bool:
    return made.name == expected.name and same(made.args, expected.args)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def ours_tool_call_f1(name: str) -> OursToolCallF1:
    """Each call counts."""
    return OursToolCallF1(name=name)
