"""Names of a package that are imported when first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` for a package that imports its parts on demand.

    Args:
        package: The package's ``__name__``.
        modules: Module, relative (``".loader"``) or absolute -> the names it defines, parted by spaces.

    Returns:
        The three to bind in the package's namespace.

    Example:
        >>> names, getattr_, dir_ = lazy_names("rag_kit", {".errors": "RagKitError"})
        >>> names, getattr_("RagKitError").__name__
        (['RagKitError'], 'RagKitError')
    """
    where = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the module hook itself
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(where[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *where})

    return sorted(where), __getattr__, __dir__
