"""The tool calls of an agent beside the expected ones: each call counts, values are compared by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError, MissingExtraError
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


class OursTools(Metric):
    """Base: the calls made beside ``metadata["reference_tool_calls"]``; no call on either side has no value."""

    source: ClassVar[Source] = "ours"
    stage: ClassVar[Stage] = "agent"
    metadata_needs = frozenset({"reference_tool_calls"})
    output_needs = frozenset({"messages"})

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
        return await run_in_thread(self.compute, made, expected)

    def compute(self, made: Sequence[ToolUse], expected: Sequence[ToolUse]) -> Cell:
        """The cell of two lists of calls, of which one at least is not empty."""
        raise NotImplementedError


class OursToolCallF1(OursTools):
    """Harmonic mean of the shares of made calls that were expected and of expected calls that were made.

    Beside Ragas's `tool_call_f1`: a call made ten times is ten calls; 1 is 1.0 but not "1" and not true; texts are
    compared without case, width and outer spaces.
    """

    def __init__(self, *, name: str = "ours_tool_call_f1") -> None:
        self.name = name

    def compute(self, made: Sequence[ToolUse], expected: Sequence[ToolUse]) -> Cell:
        """Both shares from the calls that are the same."""
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


class OursToolCallAccuracy(OursTools):
    """How far the calls made are those expected: the sum of what each pair has in common, over the longer list.

    A pair is a made and an expected call of one tool; it counts with the share of arguments, of all that either call
    has, which are the same on both sides. Pairs are chosen so that their sum is the greatest; in strict order they do
    not cross.

    Beside Ragas's `tool_call_accuracy`: a call too many or too few costs its share and not everything; a further
    argument costs; values are compared by kind as in `OursToolCallF1`; and without order calls of one tool are paired
    by what fits best, not by the order of their arguments' texts.

    Args:
        strict_order: Whether calls must come in the expected order to be paired.

    Example:
        >>> asked = [ToolUse("weather", {"city": "巴黎"}), ToolUse("uv", {"city": "巴黎", "day": 1})]
        >>> OursToolCallAccuracy().compute(asked[:1], asked).value
        0.5
        >>> [OursToolCallAccuracy(strict_order=each).compute(asked[::-1], asked).value for each in (True, False)]
        [0.5, 1.0]
    """

    def __init__(self, *, strict_order: bool = True, name: str = "ours_tool_call_accuracy") -> None:
        self.name, self.strict_order = name, bool(strict_order)

    def settings(self) -> dict[str, Any]:
        """Whether the order counts, too."""
        return {**super().settings(), "strict_order": self.strict_order}

    def compute(self, made: Sequence[ToolUse], expected: Sequence[ToolUse]) -> Cell:
        """The best pairs' sum over the longer list.

        Raises:
            MissingExtraError: If the order does not count and SciPy is not installed.
        """
        table = [[agreement(one, other) for other in expected] for one in made]
        total = _in_order(table) if self.strict_order else _in_any_order(table)
        return Cell.ok(
            total / max(len(made), len(expected)),
            f"{total:g} of {len(made)} calls made and {len(expected)} expected agree",
            agreeing=total, made=len(made), expected=len(expected),
        )  # fmt: skip


def agreement(made: ToolUse, expected: ToolUse) -> float:
    """Share of the arguments of two calls that are the same on both sides; 0 for two tools.

    Example:
        >>> agreement(ToolUse("w", {"city": "Paris", "day": 2}), ToolUse("w", {"city": "paris", "day": 1}))
        0.5
    """
    if made.name != expected.name:
        return 0.0
    names = {*made.args, *expected.args}
    if not names:
        return 1.0
    shared = made.args.keys() & expected.args.keys()
    return sum(same(made.args[name], expected.args[name]) for name in shared) / len(names)


def _in_order(table: Sequence[Sequence[float]]) -> float:
    """Greatest sum of pairs that do not cross."""
    if not table:
        return 0.0
    best = [0.0] * (len(table[0]) + 1)
    for row in table:
        above = best
        best = [0.0]
        for place, value in enumerate(row):
            best.append(max(above[place] + value, above[place + 1], best[place]))
    return best[-1]


def _in_any_order(table: Sequence[Sequence[float]]) -> float:
    """Greatest sum of pairs, each call in one at most."""
    if not table or not table[0]:
        return 0.0
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise MissingExtraError("eval", "OursToolCallAccuracy(strict_order=False)") from None
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(sum(table[row][column] for row, column in zip(rows, columns, strict=True)))


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


def ours_tool_call_accuracy(name: str) -> OursToolCallAccuracy:
    """In strict order, unless the name says flexible."""
    return OursToolCallAccuracy(strict_order=not name.endswith("_flexible"), name=name)
