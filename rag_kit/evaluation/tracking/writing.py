"""How results are written to any tracker: counted, side by side, and closed in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rag_kit.errors import TrackingError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking.http import Refused, Server
from rag_kit.evaluation.tracking.tracked import OnError, Tally, Tracked

S = TypeVar("S")


class Place(Protocol):
    """Where something is written to."""

    @property
    def url(self) -> str:
        """Its address, without a key."""

    def close(self) -> None:
        """Let go of connections."""


def track(tool: str, place: Place, write: Callable[[Tally], None]) -> Tracked:
    """Write and count; an error holds what was written until then.

    Args:
        tool: Name of the tracker, as in `Tracked`.
        place: Closed in the end.
        write: Writes, and counts in the tally.

    Raises:
        TrackingError: What ``write`` raised.
    """
    tally = Tally(tool, place.url)
    try:
        write(tally)
    except TrackingError as error:
        error.tracked = tally.result()
        raise
    finally:
        place.close()
    return tally.result()


class Writer:
    """What writers to LangSmith and Phoenix share: results, a server, the count, and what a refused entry means.

    Args:
        server: The tracker's.
        tally: Where entries are counted.
        results: What is written.
        max_concurrency: Most requests at a time.
        on_error: Whether a refused entry ends the writing (``"raise"``) or is counted (``"skip"``).
    """

    def __init__(
        self, server: Server, tally: Tally, results: Results, max_concurrency: int, on_error: OnError
    ) -> None:
        self._server = server
        self._tally = tally
        self._results = results
        self._width = max_concurrency
        self._skip = on_error == "skip"

    def _each(
        self, items: Sequence[S], send: Callable[[S], object], size: Callable[[S], int] = lambda _: 1
    ) -> None:
        """Send entries side by side.

        Args:
            items: One for each request.
            send: Makes the request.
            size: How many entries are lost where the item is refused.
        """

        def one(item: S) -> None:
            try:
                send(item)
            except Refused as error:
                self._refused(error, size(item))
            else:
                self._tally.wrote()

        self._server.each(one, items, self._width)

    def _refused(self, error: Refused, count: int = 1) -> None:
        if not self._skip:
            raise error
        self._tally.fail(str(error), count)
