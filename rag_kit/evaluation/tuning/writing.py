"""The winner as a Python file. Every value is a literal: no text of anyone becomes code."""

from __future__ import annotations

import ast
import keyword
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import check_target, write_file

if TYPE_CHECKING:
    from rag_kit.evaluation.tuning.result import TuningResult

_RETRIEVERS = ("rag_kit.evaluation.tuning.retrievers", "build_retriever")
_OF_RETRIEVERS = """

def make(documents, *, embeddings=None, llm=None):
    return make_pipeline(documents, SETTINGS, embeddings=embeddings, llm=llm)
"""
_OF_A_FUNCTION = """

def make():
    return make_pipeline(SETTINGS)
"""


def write_python(result: TuningResult, path: Path) -> Path:
    """Write the file; `TuningResult.write_python`.

    Raises:
        InvalidInputError: If the path is no place for a file.
    """
    check_target(path)
    found = {
        "metric": result.metric,
        "search_part": result.best_trial.value,
        "questions": result.best_trial.asked,
        "verdict": result.verdict,
    }
    text = python_text(result.best, found, result.maker)
    write_file(path, lambda file: file.write(text.encode("utf-8")))
    return path


def python_text(settings: Mapping[str, Any], found: Mapping[str, Any], maker: tuple[str, str] | None) -> str:
    """The file's text.

    Args:
        settings: The setting.
        found: How it was judged.
        maker: Module and function that make the pipeline; ``None`` for a file with the setting alone.

    Raises:
        InvalidInputError: If a name is none that Python could import, or a value is no literal.

    Example:
        >>> print(python_text({"k": 5}, {"metric": "mrr"}, ("my.parts", "make")).split("# How")[0])
        \"\"\"The best setting that a search of rag_kit.evaluation.tune found. Change what you like.\"\"\"
        <BLANKLINE>
        from __future__ import annotations
        <BLANKLINE>
        from my.parts import make as make_pipeline
        <BLANKLINE>
        SETTINGS = {
            'k': 5,
        }
        <BLANKLINE>
        <BLANKLINE>
    """
    imported = end = ""
    if maker is not None:
        module, name = maker
        if not all(map(_is_name, [*module.split("."), name])):
            raise InvalidInputError(
                f"{module!r:.120} and {name!r:.120} are no names that Python could import"
            )
        imported = f"\nfrom {module} import {name} as make_pipeline\n"
        end = _OF_RETRIEVERS if maker == _RETRIEVERS else _OF_A_FUNCTION
    return (
        '"""The best setting that a search of rag_kit.evaluation.tune found. Change what you like."""\n\n'
        f"from __future__ import annotations\n{imported}\nSETTINGS = {_literal(settings)}\n\n"
        f"# How it was judged.\nFOUND = {_literal(found)}\n{end}"
    )


def importable(maker: Any) -> tuple[str, str] | None:
    """Module and name by which a file can import what makes pipelines; ``None`` where it cannot."""
    from rag_kit.evaluation.tuning.retrievers import RetrieverSpace

    if isinstance(maker, RetrieverSpace):
        return _RETRIEVERS
    module, name = getattr(maker, "__module__", None), getattr(maker, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    if not all(map(_is_name, [*module.split("."), name])):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is maker else None


def _literal(values: Mapping[str, Any]) -> str:
    text = "{\n" + "".join(f"    {name!r}: {value!r},\n" for name, value in values.items()) + "}"
    try:
        same = ast.literal_eval(text) == dict(values)
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise InvalidInputError(
            f"{values!r:.200} cannot be written as Python literals; give texts, numbers and lists"
        )
    return text


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)
