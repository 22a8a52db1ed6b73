"""Routing by a function of the user's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable

from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import acall_runnable
from rag_kit.retrieval.rewrite_steps import Call
from rag_kit.retrieval.routing.route import Choice
from rag_kit.retrieval.routing.routers import Router, RouterCall, Ruling


class FunctionRouter(Router):
    """Have a function choose.

    Args:
        func: Takes the question, and gives a name, several names (best first), a mapping of name to reason, or
            ``None`` if nothing fits. It may be asynchronous, and may be a LangChain runnable.

    Raises:
        InvalidInputError: If it cannot be called; on call, if it gives something else.
    """

    name = "function"

    def __init__(self, func: Any) -> None:
        if not callable(func) and not isinstance(func, Runnable):
            raise InvalidInputError(f"how is {type(func).__name__}; it must be a function of the question.")
        self.func = func

    async def decide(self, call: RouterCall) -> Ruling:
        """Call the function; see ``Router.decide``."""
        if isinstance(self.func, Runnable):
            sync = partial(self.func.invoke, call.question, call.config)
            native: Any = partial(acall_runnable, self.func, call.question, call.config)
        else:
            sync = partial(call_function, self.func, call.question)
            native = partial(acall_function, self.func, call.question)
        (given,) = await call.do(Call("route function", sync, native))
        return Ruling(call.known(_choices(given)))


def _choices(given: Any) -> list[Choice]:
    if given is None:
        return []
    if isinstance(given, str):
        return [Choice(given)]
    if isinstance(given, Mapping):
        return [Choice(_name(name), None, str(reason)) for name, reason in given.items()]
    if isinstance(given, Iterable):
        return [Choice(_name(name)) for name in given]
    raise InvalidInputError(_wrong(given))


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(_wrong(value))
    return value


def _wrong(given: Any) -> str:
    return (
        f"The routing function gave {type(given).__name__}; it must give a name, a list of names, a mapping of name "
        "to reason, or None."
    )
