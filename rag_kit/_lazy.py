"""Names of a package that are imported when first used (PEP 562)."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

# a line such as "    from rag_kit.retrieval.bm25 import BM25Retriever as BM25Retriever": module and name
_IMPORT = re.compile(r"^    from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def lazy_names(
    package: str, elsewhere: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` for a package that imports its parts on demand.

    The names are read from the source of the package, which imports them for type checkers, one a line:
    ``from module import Name as Name`` under ``if TYPE_CHECKING``. ``elsewhere`` (name -> module) adds names of other
    packages that people look for in this one; they are not in ``__all__``.

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
    module_of = {name: module for module, name in _IMPORT.findall(source)}

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the module hook itself
        module = module_of.get(name) or (elsewhere or {}).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)  # so that the next use finds it there
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *module_of})

    return sorted(module_of), __getattr__, __dir__
