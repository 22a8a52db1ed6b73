"""The search on disk: an Optuna study in a folder, opened by one process at a time."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError

FILE = "study.log"
_LOCK = ".tuning.lock"
_NAME = "rag_kit"


def import_optuna() -> Any:
    """Import Optuna.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("eval", "rag_kit.evaluation.tune") from None
    return optuna


@contextmanager
def quiet() -> Iterator[Any]:
    """Import Optuna and silence its messages within the context; the user's verbosity is restored afterwards."""
    optuna = import_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield optuna
    finally:
        optuna.logging.set_verbosity(before)


class StudyFolder:
    """The folder of a search, locked while it is open. Its methods block: call them outside of an event loop.

    Args:
        folder: Where the study is, or will be.
        header: What is searched; a folder of another search is refused.
        higher_is_better: The direction of the metric.

    Raises:
        InvalidInputError: If the folder is a file, is of another search, is in use, or is damaged.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], *, higher_is_better: bool) -> None:
        from filelock import FileLock, Timeout

        if folder.exists() and not folder.is_dir():
            raise InvalidInputError(f"out is {str(folder)!r}, which is a file; give a folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"the folder {str(folder)!r} cannot be made: {error.strerror}; give another out"
            ) from error
        self._lock = FileLock(folder / _LOCK, thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InvalidInputError(
                f"another search is writing to {str(folder)!r}; wait for it, or give another out"
            ) from None
        try:
            self.study = self._open(folder, "maximize" if higher_is_better else "minimize")
            self._check_header(folder, json.loads(json.dumps(header)))
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock.release()

    def _open(self, folder: Path, direction: str) -> Any:
        path = folder / FILE
        (folder / f"{FILE}.lock").unlink(missing_ok=True)  # of Optuna, left by a kill; nobody else is here
        if path.exists():
            content = path.read_bytes()
            with path.open("r+b") as file:  # a line that a kill has cut off is dropped
                file.truncate(content.rfind(b"\n") + 1)
        with quiet() as optuna, _checked_access(path):
            storage = _storage(optuna, path)
            if optuna.get_all_study_names(storage):
                return optuna.load_study(study_name=_NAME, storage=storage)
            return optuna.create_study(study_name=_NAME, storage=storage, direction=direction)

    def _check_header(self, folder: Path, header: Mapping[str, Any]) -> None:
        found = self.study.user_attrs.get("search")
        if found is None and self.study.get_trials(deepcopy=False):
            raise InvalidInputError(
                f"{FILE} in {str(folder)!r} does not say what was searched; give another out"
            )
        if found is None:
            self.study.set_user_attr("search", header)
        elif other := [name for name in {**header, **found} if found.get(name) != header.get(name)]:
            raise InvalidInputError(
                f"{str(folder)!r} holds another search: not the same {', '.join(other)}; give another folder as out, "
                "or the same arguments as before to go on with it"
            )


def load_study(folder: Path) -> Any:
    """Open the study of a folder for reading, also while a search writes it.

    Raises:
        InvalidInputError: If there is none, or it is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        raise InvalidInputError(f"{str(folder)!r} holds no {FILE}; give the folder that tune got as out")
    with quiet() as optuna, _checked_access(path):
        return optuna.load_study(study_name=_NAME, storage=_storage(optuna, path))


def _storage(optuna: Any, path: Path) -> Any:
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(path)))


@contextmanager
def _checked_access(path: Path) -> Iterator[None]:
    """Raise InvalidInputError for whatever goes wrong while Optuna opens the file."""
    try:
        yield
    except Exception as error:  # a file that Optuna did not write fails in many ways
        raise InvalidInputError(
            f"{str(path)!r} is damaged, or cannot be read or written ({type(error).__name__}: {error}); give another "
            "folder as out"
        ) from error
