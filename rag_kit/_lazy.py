"""Attributes of a package that are imported when first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_attributes(
    package: str, where: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` for a package that imports its parts on demand.

    Args:
        package: The package's ``__name__``.
        where: Name of each public attribute -> relative module that defines it (``".loader"``).

    Returns:
        The two functions to bind in the package's namespace.

    Example:
        >>> getattr_, dir_ = lazy_attributes("rag_kit", {"RagKitError": ".errors"})
        >>> getattr_("RagKitError").__name__
        'RagKitError'
    """

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the module hook itself
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(where[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *where})

    return __getattr__, __dir__
