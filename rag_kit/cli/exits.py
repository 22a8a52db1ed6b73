"""Exit codes of ``rag-kit``: one for each kind of trouble, so that scripts can tell them apart."""

from __future__ import annotations

from types import FrameType
from typing import Any, NoReturn

from rag_kit import errors

OK = 0
FAILED = 1  #: the command ran and the result is bad, e.g. doctor found a fault, --strict met a broken file
USAGE = 2  #: wrong arguments, settings, prompt files or data
NO_INDEX = 3  #: there is no index in that folder
MISMATCH = 4  #: the index was built with another embedding model
UNREACHABLE = 5  #: the model's endpoint does not answer
UNAUTHORIZED = 6  #: the model's endpoint refused the key
PARTIAL = 7  #: done, but some files could not be read
LOCKED = 8  #: another process is writing to the index, or to the folder of results
BUDGET = 9  #: max_calls, max_tokens or deadline was reached
DAMAGED = 10  #: the index is damaged or of another format version
INTERRUPTED = 130  #: Ctrl-C

#: The first match wins, so subclasses stand before their parents.
_BY_ERROR: tuple[tuple[Any, int], ...] = (
    (errors.IndexMissingError, NO_INDEX),
    (errors.IndexMismatchError, MISMATCH),
    (errors.LockedError, LOCKED),
    (errors.IndexFormatError, DAMAGED),
    (errors.ModelUnauthorizedError, UNAUTHORIZED),
    (errors.ModelUnreachableError, UNREACHABLE),
    (errors.BudgetExceededError, BUDGET),
    ((errors.InvalidInputError, errors.ConfigurationError, errors.MissingExtraError), USAGE),
)


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a command as Ctrl-C does, and a session too."""


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM as Ctrl-C is handled, so that files are closed and locks are released."""
    raise Terminated


def exit_code(error: BaseException) -> int:
    """Return the exit code for an exception."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)
