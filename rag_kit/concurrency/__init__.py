"""One fan-out, sync and async, on threads or an event loop; work done ahead; and budgets of calls, tokens and time.

Nothing else in the kit starts threads or gathers coroutines. This package imports no LangChain module.
"""

from __future__ import annotations

from rag_kit.concurrency.branches import afan_out, afan_out_map, fan_out, fan_out_map
from rag_kit.concurrency.budget import Budget, use_budget

__all__ = ["Budget", "afan_out", "afan_out_map", "fan_out", "fan_out_map", "use_budget"]
