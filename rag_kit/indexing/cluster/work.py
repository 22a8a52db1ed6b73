"""One run on a cluster: its tasks, what they gave, and what becomes of them when workers die."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from rag_kit.concurrency.branch import check_abandoned
from rag_kit.errors import ClusterError, ConfigurationError, RagKitError
from rag_kit.indexing.cluster import worker
from rag_kit.models.sending import make_sendable

_LOOK_SECONDS = 5.0
_WITHOUT_WORKERS = 300.0
_DEATHS_OF_A_CALL = 10
_MOMENT = 0.2


@contextmanager
def on_cluster(client: Any, parts: worker.Parts) -> Iterator[Cluster]:
    """Send the parts of a run to the workers, and take them away afterwards.

    Raises:
        ConfigurationError: One cannot be sent.
        ClusterError: A worker cannot do the work.
    """
    run = f"rag-kit-{uuid.uuid4().hex}"
    make_sendable(parts.embeddings)
    make_sendable(parts.llm)
    _check_sendable(parts)
    try:
        client.register_plugin(worker.Keeper(parts), name=run)
        yield Cluster(client, run)
    finally:
        with suppress(OSError, KeyError, RuntimeError, ValueError):  # the cluster may be gone
            client.unregister_worker_plugin(run)


def _check_sendable(parts: worker.Parts) -> None:
    from distributed.protocol.pickle import dumps

    for name, part in vars(parts).items():
        try:
            dumps(part)
        except Exception as error:
            what = "splitter" if name == "settings" else name
            raise ConfigurationError(
                f"{what}={type(part).__name__} cannot be sent to workers ({str(error)[:200]}). Give one that can be "
                "pickled, without open connections or locks, or leave workers= and scheduler= out."
            ) from error


class Cluster:
    """Tasks of one run.

    Args:
        client: A ``distributed.Client``.
        run: Name of the run, under which workers keep its parts.
    """

    def __init__(self, client: Any, run: str) -> None:
        self._client = client
        self._run = run
        self._numbers = count()
        self._threads, self._looked, self._without = 0, 0.0, 0.0
        self._condition = threading.Condition()
        self._calls, self._closed = 0, False

    @property
    def threads(self) -> int:
        """Threads of all workers, as of some seconds ago.

        Raises:
            ClusterError: There have been no workers for five minutes.
        """
        now = time.monotonic()
        if not self._looked or now - self._looked > _LOOK_SECONDS:
            self._looked, self._threads = now, sum(self._client.nthreads().values())
            self._without = 0.0 if self._threads else self._without or now
            if self._without and now - self._without > _WITHOUT_WORKERS:
                raise ClusterError(
                    f"The scheduler at {self._address} has had no workers for {_WITHOUT_WORKERS:.0f} seconds. Start "
                    "workers, and run the same again: it goes on where it stopped."
                )
        return max(1, self._threads)

    @property
    def _address(self) -> str:
        return str(getattr(self._client.scheduler, "address", "?"))

    def submit(self, task: Callable[..., Any], *arguments: Any, priority: int = 0) -> Any:
        """The future of a task of `worker`."""
        key = (f"rag-kit-{task.__name__}-{self._run[-32:]}", next(self._numbers))
        return self._client.submit(
            task, self._run, *arguments, key=key, pure=False, retries=0, priority=priority
        )

    def wait(self, future: Any, *others: Any) -> None:
        """Wait until a task has ended in any way, and a moment for others, to fetch their results together."""
        while not future.done():
            check_abandoned()
            self._pause([future], 1.0)
            _ = self.threads  # raises where there are none
        self._pause(others, _MOMENT)

    def _pause(self, futures: Sequence[Any], seconds: float) -> None:
        from distributed import wait

        with suppress(TimeoutError), self._client.as_current():
            wait(list(futures), timeout=seconds)

    def results(self, futures: Sequence[Any]) -> list[Any] | None:
        """What tasks gave; ``None`` where a worker died meanwhile and one must be looked at again.

        Raises:
            ClusterError: The scheduler is gone.
        """
        from distributed import CancelledError, KilledWorker

        try:
            return list(self._client.gather(list(futures)))
        except KilledWorker:
            return None
        except (CancelledError, OSError) as error:
            raise ClusterError(
                f"The scheduler at {self._address} went away. What was committed stays; run the same again, and it "
                "goes on where it stopped."
            ) from error

    def call(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """What a task gives, before tasks that were submitted earlier; again where its worker dies.

        Raises:
            RagKitError: What the task gave.
            ClusterError: Its worker died ten times.
        """
        with self._calling():
            for _ in range(_DEATHS_OF_A_CALL):
                future = self.submit(task, *arguments, priority=10)
                self.wait(future)
                if (found := self.results([future])) is not None:
                    if isinstance(found[0], RagKitError):
                        raise found[0]
                    return found[0]
        raise ClusterError(
            f"{_DEATHS_OF_A_CALL} workers died while they called a model. Do they have memory enough for it?"
        )

    @contextmanager
    def _calling(self) -> Iterator[None]:
        with self._condition:
            while self._closed:
                self._condition.wait(1)
                check_abandoned()
            self._calls += 1
        try:
            yield
        finally:
            with self._condition:
                self._calls -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A time without calls of models, so that a worker that dies can be blamed on one task."""
        with self._condition:
            self._closed = True
            while self._calls:
                self._condition.wait(1)
                check_abandoned()
        try:
            yield
        finally:
            with self._condition:
                self._closed = False
                self._condition.notify_all()
