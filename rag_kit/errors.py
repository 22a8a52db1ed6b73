"""The exceptions of rag_kit, all under `RagKitError`; wrong arguments are `InvalidInputError`, a ``ValueError`` too.

Every message says what was given, what is allowed and what to do about it; no message holds a key.
"""

from __future__ import annotations

from typing import Any


class RagKitError(RuntimeError):
    """Root of every exception that rag_kit raises on purpose.

    The LangGraph server, and so Studio, passes on the messages of RuntimeErrors and ValueErrors alone.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the class's ``__init__``, whose arguments may be others than the message."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class InvalidInputError(RagKitError, ValueError):
    """An argument is not allowed; the message names it and what is allowed."""


class FilterError(InvalidInputError):
    """A metadata filter is malformed, or asks for what the store cannot do."""


class MissingExtraError(RagKitError, ImportError):
    """An optional dependency is not installed; made from the name of the extra and what needs it, for the message."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(
            f"{needed_for} needs packages that are not installed. "
            f"Install the extra {extra!r} where this rag-kit is installed: python -m pip install 'rag-kit[{extra}]'"
        )


class ConfigurationError(RagKitError):
    """A setting, a model name or a key is missing or wrong, or names what does not answer or cannot be read."""


class ModelError(RagKitError):
    """A model could not be reached or gave no usable answer."""


class ModelUnreachableError(ModelError):
    """The endpoint did not answer (connection refused or reset, time-out, 5xx), or kept answering 429."""


class ModelUnauthorizedError(ModelError):
    """The endpoint refused the key (401, 403)."""


class ContextLengthError(ModelError):
    """A prompt is longer than the context of its model.

    Attributes:
        given, limit: Tokens of the prompt, and of the model's context, if the endpoint named them; else ``None``.
    """

    def __init__(self, message: str, given: int | None = None, limit: int | None = None) -> None:
        self.given, self.limit = given, limit
        super().__init__(message)


class ModelOutputError(ModelError):
    """A model, reranker or router answered, but with nothing that can be used."""


class TrackingError(RagKitError):
    """A tracker of experiments (LangSmith, MLflow, Phoenix) refused results, or did not answer.

    Attributes:
        tracked: What had been written until then (`rag_kit.evaluation.tracked.Tracked`); ``None`` before the first.
    """

    def __init__(self, message: str, tracked: object = None) -> None:
        self.tracked = tracked
        super().__init__(message)


class BudgetExceededError(RagKitError):
    """A cap on calls, tokens or time was reached.

    Args:
        what: ``"calls"``, ``"tokens"`` or ``"deadline"``.
        limit: The cap (a count, or seconds for ``"deadline"``).
    """

    def __init__(self, what: str, limit: float) -> None:
        self.what = what
        self.limit = limit
        unit = " s" if what == "deadline" else ""
        name = {"calls": "max_calls", "tokens": "max_tokens"}.get(what, "deadline")
        super().__init__(
            f"The budget of {what} is used up ({name}={limit:g}{unit}). Raise {name} to allow more."
        )


class BranchError(RagKitError):
    """A branch of a fan-out failed; ``__cause__`` holds the branch's own exception."""


class BranchTimeoutError(BranchError):
    """A branch of a fan-out took longer than its time-out."""


class StatementError(RagKitError):
    """A statement that a model wrote for a database was refused, or failed in it.

    Attributes:
        statement: The statement.
        refused: Whether it was refused as not allowed; ``False`` where it failed.
    """

    def __init__(self, message: str, statement: str = "", *, refused: bool = False) -> None:
        self.statement = statement
        self.refused = refused
        super().__init__(message)


class ReadError(RagKitError):
    """A source document could not be converted to text; the message names the file and why."""


class DocumentIndexError(RagKitError):
    """Root of what an index can refuse."""


class IndexMissingError(DocumentIndexError):
    """There is no index in the folder."""


class IndexFormatError(DocumentIndexError):
    """The index was written by another version of the format, or is damaged."""


class IndexMismatchError(DocumentIndexError):
    """The index was built with another embedding model or other settings."""


class LockedError(RagKitError):
    """Another process is writing to the index or to the folder of results."""
