"""One fan-out, sync and async, on one shared pool; work done ahead; and budgets of calls, tokens and time.

Nothing else in the kit starts threads or gathers coroutines. This package imports no LangChain module.
"""

from __future__ import annotations

from rag_kit.concurrency.ahead import draw_ahead, map_ahead
from rag_kit.concurrency.asynchronous import afan_out, afan_out_map
from rag_kit.concurrency.bridge import run_coroutine, run_in_thread
from rag_kit.concurrency.budget import (
    Budget,
    budget_scope,
    charge_call,
    charge_tokens,
    check_budget,
    current_budget,
    remaining_seconds,
    use_budget,
)
from rag_kit.concurrency.outcome import FanOut, Outcome
from rag_kit.concurrency.seconds import check_seconds
from rag_kit.concurrency.threaded import fan_out, fan_out_map

__all__ = [
    "Budget",
    "FanOut",
    "Outcome",
    "afan_out",
    "afan_out_map",
    "budget_scope",
    "charge_call",
    "charge_tokens",
    "check_budget",
    "check_seconds",
    "current_budget",
    "draw_ahead",
    "fan_out",
    "fan_out_map",
    "map_ahead",
    "remaining_seconds",
    "run_coroutine",
    "run_in_thread",
    "use_budget",
]
