"""Blocking calls on the event loop fail the test that makes them, and only that one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from blockbuster import blockbuster_ctx as watched


@contextmanager
def blockbuster_ctx(*modules: Any) -> Iterator[Any]:
    """As blockbuster's own, but what other tests left to the garbage collector is not swept up meanwhile."""
    gc.disable()
    try:
        with watched(*modules) as found:
            yield found
    finally:
        gc.enable()
