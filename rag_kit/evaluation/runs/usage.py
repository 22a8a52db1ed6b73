"""Count the requests to chat models inside a block, by model, whoever makes them: LangChain tells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook

from rag_kit.evaluation.runs.prices import Usage


class UsageRecorder(BaseCallbackHandler):
    """Adds up calls and tokens by the model's name."""

    run_inline = True  # counting takes microseconds; a thread for it would take more
    only_models = True

    def __init__(self) -> None:
        super().__init__()
        self.usage: Usage = {}
        self._names: dict[Any, str] = {}
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """Requests so far."""
        return sum(counts["calls"] for counts in self.usage.values())

    @property
    def tokens(self) -> int:
        """Tokens in and out so far."""
        return sum(counts["input_tokens"] + counts["output_tokens"] for counts in self.usage.values())

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Remember the model's name, for answers that do not tell it."""
        self._remember(kwargs)

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """As for chat models."""
        self._remember(kwargs)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a request that was answered."""
        generations = response.generations[0] if response.generations else []
        message = getattr(generations[0], "message", None) if generations else None
        used = getattr(message, "usage_metadata", None) or {}
        named = getattr(message, "response_metadata", {}).get("model_name")
        self._count(kwargs.get("run_id"), named, used.get("input_tokens", 0), used.get("output_tokens", 0))

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A request that failed was one, too."""
        self._count(kwargs.get("run_id"), None, 0, 0)

    def _remember(self, kwargs: dict[str, Any]) -> None:
        name = (kwargs.get("metadata") or {}).get("ls_model_name")
        if name:
            with self._lock:
                self._names[kwargs.get("run_id")] = str(name)

    def _count(self, run_id: Any, named: Any, tokens_in: Any, tokens_out: Any) -> None:
        with self._lock:
            remembered = self._names.pop(run_id, "unknown")
            name = str(named or remembered)
            counts = self.usage.setdefault(name, {"calls": 0, "input_tokens": 0, "output_tokens": 0})
            counts["calls"] += 1
            counts["input_tokens"] += int(tokens_in or 0)
            counts["output_tokens"] += int(tokens_out or 0)


_recorder: ContextVar[UsageRecorder | None] = ContextVar("rag_kit_evaluation_usage", default=None)
register_configure_hook(_recorder, inheritable=True)


@contextmanager
def recording() -> Iterator[UsageRecorder]:
    """Count what is asked in the block, threads and tasks that are started in it included."""
    recorder = UsageRecorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)
