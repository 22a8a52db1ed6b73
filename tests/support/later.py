"""Packages that take seconds to import are imported where a test uses them, not by each process that collects it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class _Later:
    """Stands for a package, and imports it when an attribute is read, not for a private one that pytest looks for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def later(name: str) -> Any:
    """The package, imported at its first use; the file that asks for it is skipped where it is not installed."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed", allow_module_level=True)
    return _Later(name)
