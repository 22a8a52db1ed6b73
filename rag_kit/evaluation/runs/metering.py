"""Metering of a run: requests and tokens by model, their price, caps, and the progress that people see."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook

from rag_kit.concurrency import Budget
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import Usage

Prices = dict[str, dict[str, float]]  # model, or "*" -> "input" and "output" for a million tokens


def read_prices(value: Any) -> Prices:
    """Read ``prices`` of `evaluate`: a table, one number (for all models, ``"*"``), or ``None``."""
    if value is None:
        return {}
    table: Prices = {}
    by_model = value if isinstance(value, Mapping) else {"*": value}
    for model, price in by_model.items():
        amounts = price if isinstance(price, Mapping) else {"input": price, "output": price}
        has_known_names = amounts and set(amounts) <= {"input", "output"}
        are_finite = all(
            type(amount) in (int, float) and 0 <= amount < math.inf for amount in amounts.values()
        )
        if not isinstance(model, str) or not has_known_names or not are_finite:
            raise InvalidInputError(
                f"the price of {model!r:.80} is {price!r:.80}; give {{'model': {{'input': 0.15, 'output': 0.6}}}} for "
                "a million tokens each, '*' for any other model, or one number for a million tokens of any kind"
            )
        table[model] = {name: float(amount) for name, amount in amounts.items()}
    return table


def cost(prices: Prices, usage: Mapping[str, Mapping[str, int]], part: Output | Cell | None) -> float | None:
    """Return the price of the tokens used (model -> ``input_tokens``, ``output_tokens``); ``None`` if one is unknown.

    Where ``usage`` is empty, the ``tokens`` of ``part``, an output or a cell, are priced as those of model ``"*"``.

    Example:
        >>> usage = {"gpt-2026": {"input_tokens": 1000, "output_tokens": 500}}
        >>> cost({"gpt": {"input": 1.0, "output": 4.0}}, usage, None)
        0.003
    """
    if not prices:
        return None
    if not usage and part is not None and part.tokens:
        any_model = prices.get("*", {})
        if any_model.get("input") != any_model.get("output"):
            return None  # which of the tokens went in and which came out is not known
        usage = {"*": {"input_tokens": part.tokens}}
    total = 0.0
    for model, used in usage.items():
        # the model's own price, or that of the longest name it begins with (gpt-x for gpt-x-2026-01-01)
        names = [name for name in prices if model == name or model.startswith(f"{name}-")]
        price = prices.get(max(names, key=len, default="*"), {})
        counts = {name: used.get(f"{name}_tokens", 0) for name in ("input", "output")}
        if not price or any(count and name not in price for name, count in counts.items()):
            return None
        total += sum(price[name] * count / 1e6 for name, count in counts.items() if count)
    return total


class Recorder(BaseCallbackHandler):
    """Counts requests and tokens by model, and notes what a `RunBudget` refused."""

    run_inline = True  # counting takes microseconds; a thread for it would take more
    only_models = True

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.usage: Usage = {}
        self.refused: list[BudgetExceededError] = []
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Tokens in and out so far."""
        return sum(sum(counts.values()) for counts in self.usage.values())

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a request that was answered, and the tokens that the reply says it took, if it says so."""
        replies = response.generations[0] if response.generations else []  # to the only prompt
        message = getattr(replies[0], "message", None) if replies else None
        tokens = getattr(message, "usage_metadata", None) or {}
        model = str(getattr(message, "response_metadata", {}).get("model_name") or "unknown")
        with self._lock:
            self.calls += 1
            if tokens:
                counts = self.usage.setdefault(model, {})
                for name in ("input_tokens", "output_tokens"):
                    counts[name] = counts.get(name, 0) + int(tokens.get(name) or 0)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Count a request that failed."""
        with self._lock:
            self.calls += 1


_recorder: ContextVar[Recorder | None] = ContextVar("rag_kit_evaluation_usage", default=None)
register_configure_hook(_recorder, inheritable=True)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Count the requests to models that are made in the block, also on threads and in tasks started there."""
    recorder = Recorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


class RunBudget(Budget):
    """The caps of a run, which notes a refusal in the recorder of the output or cell that it hit.

    A graph whose call is refused may still answer, with less; that answer must not be taken for a result.
    """

    def check_call(self) -> None:
        """Refuse a call beyond the caps as `Budget` does, and note the refusal."""
        try:
            super().check_call()
        except BudgetExceededError as error:
            if (recorder := _recorder.get()) is not None:
                recorder.refused.append(error)
            raise


@dataclass(frozen=True)
class RunProgress:
    """How far a run is, and what it cost so far; examples of an earlier run count as done."""

    done: int
    total: int
    reused: int
    calls: int
    tokens: int
    money: float | None
    seconds: float

    def __str__(self) -> str:
        money = "" if self.money is None else f", {self.money:.4g} money"
        return f"{self.calls} calls, {self.tokens / 1000:.1f}k tokens{money}"


Report = Callable[[RunProgress], None]


@contextmanager
def reporting(progress: bool | Report, name: str) -> Iterator[Report]:
    """Yield the function to call with each `RunProgress`: the user's own, or one that draws a bar of tqdm's on stderr.

    The bar draws nothing where stderr is no terminal (nor Jupyter), is missing or is closed.
    """
    bar: Any = None

    def draw(state: RunProgress) -> None:
        nonlocal bar
        with suppress(OSError, ValueError):  # a broken pipe, a closed terminal
            bar = _make_bar(state, name) if bar is None else bar
            bar.set_postfix_str(str(state), refresh=False)
            bar.update(state.done - bar.n)

    report: Report = draw if progress else lambda state: None
    try:
        yield progress if callable(progress) else report
    finally:
        with suppress(OSError, ValueError):
            if bar is not None:
                bar.close()


def _make_bar(state: RunProgress, name: str) -> Any:
    """Make a bar of tqdm's on stderr, which is not drawn if nobody sees it; raise if the terminal is closed."""
    from tqdm import tqdm

    is_shown = sys.stderr is not None and ("ipykernel" in sys.modules or sys.stderr.isatty())
    if is_shown:  # a closed terminal raises here, where no bar is made yet that tqdm would keep
        sys.stderr.write("")
        sys.stderr.flush()
    tqdm.monitor_interval = 0  # its watching thread is not needed
    return tqdm(total=state.total, initial=state.reused, desc=name, unit="q", disable=not is_shown)
