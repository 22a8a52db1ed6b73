"""Importing Ragas: late, and without telemetry."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType

from rag_kit._privacy import turn_telemetry_off
from rag_kit.errors import MissingExtraError

_METRICS = "ragas.metrics.collections"


def require_ragas(needed_for: str) -> None:
    """See that Ragas is there, without importing it.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if "ragas" not in sys.modules and find_spec("ragas") is None:
        raise MissingExtraError("eval", needed_for)


def ragas_version() -> str | None:
    """The version that is installed; ``None`` if there is none."""
    try:
        return version("ragas")
    except PackageNotFoundError:
        return None


def import_ragas(needed_for: str) -> ModuleType:
    """The module ``ragas.metrics.collections``; its first import takes seconds: call it on a thread.

    Raises:
        MissingExtraError: If Ragas, or something that it imports, is not installed.
    """
    turn_telemetry_off()
    try:
        with warnings.catch_warnings():
            # Ragas asks for tqdm's notebook bars, which nobody here draws; without ipywidgets that warns in Jupyter
            warnings.filterwarnings("ignore", message="IProgress not found")
            return import_module(_METRICS)
    except ImportError as error:
        raise MissingExtraError("eval", needed_for) from error
