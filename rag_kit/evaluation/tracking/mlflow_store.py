"""What is needed of a place where MLflow's runs are kept, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rag_kit.errors import ConfigurationError
from rag_kit.evaluation.tracking.content import FINGERPRINT

STATE = "rag_kit.state"
COMPLETE = "complete"
FILES = "rag_kit.files"
#: Entries that are sent together.
AT_ONCE = 100


@dataclass(frozen=True)
class MlflowRun:
    """A run as the store knows it."""

    id: str
    artifact_uri: str
    params: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()
    complete: bool = False
    files: bool = False


class Store(Protocol):
    """What is needed of one."""

    url: str

    def experiment(self, name: str) -> str:
        """Id of the experiment, which is made if it is not there."""

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """The run of results with this fingerprint."""

    def create(self, experiment: str, name: str, start: int, tags: Mapping[str, str]) -> MlflowRun:
        """A new run."""

    def log(
        self,
        run: str,
        start: int,
        metrics: Mapping[str, float],
        params: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """Add entries."""

    def upload(self, run: MlflowRun, folder: Path, files: list[str]) -> None:
        """Add the files of a folder."""

    def finish(self, run: str, end: int) -> None:
        """Mark the run as finished."""

    def close(self) -> None:
        """Let go of connections."""


def run_filter(mark: str) -> str:
    """What finds the run of results with this fingerprint."""
    return f"tags.`{FINGERPRINT}` = '{mark}'"


def deleted(name: str) -> ConfigurationError:
    """The error for an experiment that nothing can be written to."""
    return ConfigurationError(
        f"MLflow's experiment {name!r:.80} is deleted; restore it there, or give experiment= another name"
    )
