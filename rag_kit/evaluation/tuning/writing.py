"""The winner as a Python file. Every value is a literal: no text of anyone becomes code."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import check_target, write_file
from rag_kit.evaluation.tuning.checking import is_parameters
from rag_kit.evaluation.tuning.parameters import plain

if TYPE_CHECKING:
    from rag_kit.evaluation.tuning.result import TuningResult

_HEAD = '"""The best setting that a search of rag_kit.evaluation.tune found. Change what you like."""\n'


def write_python(result: TuningResult, path: Path) -> Path:
    """Write the file; `TuningResult.write_python`.

    Raises:
        InvalidInputError: If the path is no place for a file.
    """
    check_target(path)
    text = python_text(result.best, found_of(result), result.maker)
    write_file(path, lambda file: file.write(text.encode("utf-8")))
    return path


def python_text(
    settings: Mapping[str, Any], found: Mapping[str, Any], maker: tuple[tuple[str, str], str] | None
) -> str:
    """The file's text.

    Args:
        settings: The setting.
        found: How it was judged.
        maker: Module and function that make the pipeline, and the parameters of the function that the file holds
            beside the settings; ``None`` for a file with the setting alone.

    Raises:
        InvalidInputError: If a value is no plain one.

    Example:
        >>> print(python_text({"k": 5}, {"metric": "mrr"}, (("my.parts", "make"), "")))
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
        # How it was judged.
        FOUND = {
            'metric': 'mrr',
        }
        <BLANKLINE>
        <BLANKLINE>
        def make():
            return make_pipeline(SETTINGS)
        <BLANKLINE>
    """
    parts = [_HEAD, "\nfrom __future__ import annotations\n"]
    if maker is not None:
        (module, name), _ = maker
        if not (all(map(_is_name, module.split("."))) and _is_name(name)):
            raise InvalidInputError(
                f"{module!r:.120} and {name!r:.120} are no names that Python could import"
            )
        if not is_parameters(maker[1]):
            raise InvalidInputError(f"{maker[1]!r:.120} are no parameters; give names, with =None or without")
        parts.append(f"\nfrom {module} import {name} as make_pipeline\n")
    parts.append(f"\nSETTINGS = {_literal(settings)}\n\n# How it was judged.\nFOUND = {_literal(found)}\n")
    if maker is not None:
        parts.append(f"\n\n{_function(maker[1])}")
    text = "".join(parts)
    _check(text, settings, found)
    return text


def found_of(result: TuningResult) -> dict[str, Any]:
    """What the file says of how good the setting is."""
    trial, held = result.best_trial, result.held_aside
    found: dict[str, Any] = {
        "metric": result.metric,
        "search_part": _short(trial.value),
        "questions": trial.asked,
    }
    if held is not None:
        found["held_aside"] = {
            "best": _short(held.best.mean), "default": _short(held.default.mean), "questions": held.pairs,
            "difference": _short(held.difference), "interval": [_short(held.low), _short(held.high)],
            "better_beyond_noise": held.better,
        }  # fmt: skip
    return {**found, "verdict": result.verdict}


def importable(function: Callable[..., Any]) -> tuple[tuple[str, str], str] | None:
    """Module and name of a function that a file can import; ``None`` for one it cannot."""
    import sys

    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    if not all(map(_is_name, module.split("."))) or not _is_name(name):
        return None
    return ((module, name), "") if getattr(sys.modules.get(module), name, None) is function else None


def _function(parameters: str) -> str:
    if not parameters:
        return "def make():\n    return make_pipeline(SETTINGS)\n"
    names = [part.split("=")[0].strip() for part in parameters.split(",")]
    given = ", ".join(
        name if place == 0 else f"{name}={name}" for place, name in enumerate(names) if name != "*"
    )
    return f"def make({parameters}):\n    return make_pipeline({given.replace(names[0], names[0] + ', SETTINGS', 1)})\n"


def _literal(values: Mapping[str, Any]) -> str:
    lines = "".join(f"    {name!r}: {value!r},\n" for name, value in _plain(values).items())
    return f"{{\n{lines}}}" if lines else "{}"


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    if not all(type(name) is str for name in values):
        raise InvalidInputError(f"the setting {values!r:.120} has names that are no texts")
    return {name: plain(value, f"{name!r:.80}") for name, value in values.items()}


def _check(text: str, settings: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """The file is parsed again, and must hold the values and nothing else."""
    assigned = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    if assigned != {"SETTINGS": _plain(settings), "FOUND": _plain(found)}:
        raise InvalidInputError(
            "a setting cannot be written as a Python literal; give texts, numbers and lists"
        )


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
