"""Calls in a forked process: a new one would import everything first."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FORK: Any = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


def in_child(function: Callable[[], Any]) -> Any:
    """Call a function in a forked process and give what it returns."""
    answers = FORK.Queue()
    process = FORK.Process(target=lambda: answers.put(function()), daemon=True)
    process.start()
    answer = answers.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    return answer


def exit_codes(*functions: Callable[[], object]) -> list[int]:
    """Call functions at the same time, each in a forked process; 0 of one that returned, -9 of a killed one."""
    processes = [FORK.Process(target=function, daemon=True) for function in functions]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]
