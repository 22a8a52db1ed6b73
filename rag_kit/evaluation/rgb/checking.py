"""What ``abilities`` may be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation.rgb.report import NAMES


def checked_rates(
    names: Sequence[str], rates: Sequence[float], count: int, limit: int | None
) -> tuple[float, ...]:
    """See that what is to be measured can be.

    Args:
        names: The abilities.
        rates: The noise rates.
        count: Passages of a question.
        limit: Most questions, if any.

    Returns:
        The noise rates, each once.

    Raises:
        InvalidInputError: If one is not allowed.
    """
    listed = isinstance(names, Sequence) and not isinstance(names, (str, bytes))
    if not listed or not names or any(name not in NAMES for name in names):
        raise InvalidInputError(f"abilities is {names!r:.120}; give a list of {', '.join(NAMES)}")
    if isinstance(rates, (str, bytes)) or not isinstance(rates, Sequence):
        raise InvalidInputError(f"noise_rates is {rates!r:.80}; give a list of numbers")
    for rate in rates:
        if (
            isinstance(rate, bool)
            or not isinstance(rate, (int, float))
            or math.isnan(rate)
            or not 0 <= rate < 1
        ):
            raise InvalidInputError(f"a noise rate is {rate!r}; give numbers of at least 0 and less than 1")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 100:
        raise InvalidInputError(f"passages is {count!r}; give 1 to 100")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInputError(f"limit is {limit!r}; give a whole number of at least 1, or None")
    return tuple(dict.fromkeys(float(rate) for rate in rates))


def check_texts(**given: Sequence[str] | None) -> None:
    """See that these are lists of texts, or None.

    Raises:
        InvalidInputError: If one is not.
    """
    for label, texts in given.items():
        if texts is not None and (isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence)):
            raise InvalidInputError(f"{label} is {texts!r:.80}; give a list of texts, or None")


def rgb_folder(source: Path | str) -> Path:
    """The folder of RGB's files.

    Raises:
        InvalidInputError: If it is none.
    """
    folder = as_path(source, "source")
    if not folder.is_dir():
        raise InvalidInputError(
            f"{str(folder)!r} is no folder; give that of RGB's files, or an EvaluationSet"
        )
    return folder
