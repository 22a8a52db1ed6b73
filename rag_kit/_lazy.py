"""Names of a package that are imported when first used (PEP 562)."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def lazy_names(
    package: str, elsewhere: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` for a package that imports its parts on demand.

    The names are those that the package's own source imports for type checkers, a line each:
    ``from module import Name as Name`` under ``if TYPE_CHECKING``. Names of ``elsewhere`` (name -> module) are those of
    other packages that readers look for here; they are not in ``__all__``.

    Example:
        >>> import rag_kit.prompts
        >>> names, getattr_, dir_ = lazy_names("rag_kit.prompts")
        >>> names, getattr_("load_prompt").__name__
        (['PromptTemplate', 'load_prompt', 'render_passages'], 'load_prompt')
    """
    loader: Any = getattr(sys.modules[package].__spec__, "loader", None)
    source = loader.get_source(package)
    if source is None:
        raise ImportError(f"{package} was installed without its source; install rag-kit again")
    where = {name: module for module, name in _IMPORT.findall(source)}

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the module hook itself
        module = where.get(name) or (elsewhere or {}).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *where})

    return sorted(where), __getattr__, __dir__
