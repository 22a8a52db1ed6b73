"""One run on a cluster: its tasks, what they gave, and what becomes of them when workers die."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit._redact import error_text
from rag_kit.concurrency.budget import check_abandoned
from rag_kit.errors import ConfigurationError, RagKitError
from rag_kit.indexing.cluster import worker
from rag_kit.models.embedding import embedding_name

_ATTEMPTS = 5
_DEATHS_OF_A_CALL = 10
_LOOK_SECONDS = 5.0
_MOST_CALLS = 1_000
_WITHOUT_WORKERS = 300.0


@contextmanager
def on_cluster(client: Any, parts: worker.Parts) -> Iterator[Cluster]:
    """Send the parts of a run to the workers, and take them away afterwards.

    Raises:
        ConfigurationError: One cannot be sent.
        ConfigurationError: A worker cannot do the work.
    """
    from cloudpickle import dumps  # as Dask does, whose own function logs the model that it cannot send

    run = f"rag-kit-{uuid.uuid4().hex}"
    for name, part in vars(parts).items():
        try:
            dumps(part)
        except Exception as error:
            raise ConfigurationError(
                f"{name}={type(part).__name__} cannot be sent to workers ({error_text(error, most=200)}). Give one "
                "that can be pickled, without open connections or locks, or leave workers= and scheduler= out."
            ) from error
    try:
        _register(client, parts, run)
        yield Cluster(client, run)
    finally:
        with suppress(OSError, KeyError, RuntimeError, ValueError):  # the cluster may be gone
            client.unregister_worker_plugin(run)


def _register(client: Any, parts: worker.Parts, run: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            client.register_plugin(parts, name=run)
            return
        except ConfigurationError:
            raise
        except Exception as error:
            if not isinstance(error, OSError) or attempt == _ATTEMPTS:
                raise ConfigurationError(
                    f"A worker cannot take part ({error_text(error, most=500)}). All need {worker.versions()}, and "
                    "the packages of readers and models."
                ) from error
            time.sleep(1)  # one died meanwhile, so that others may not have the parts


class Cluster:
    """Tasks of one run.

    Args:
        client: A ``distributed.Client``.
        run: Name of the run, under which workers keep its parts.
    """

    def __init__(self, client: Any, run: str) -> None:
        self._client = client
        self._run = run
        self._address = getattr(client.scheduler, "address", "?")
        self._numbers = count()
        self._threads, self._looked, self._seen = 0, 0.0, time.monotonic()
        self._calls = threading.Semaphore(_MOST_CALLS)

    @property
    def threads(self) -> int:
        """Threads of all workers, as of some seconds ago.

        Raises:
            ConfigurationError: There have been no workers for five minutes, or there is no scheduler.
        """
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            try:
                self._looked, self._threads = now, sum(self._client.nthreads().values())
            except OSError as error:
                raise self._gone() from error
            self._seen = now if self._threads else self._seen
            if now - self._seen > _WITHOUT_WORKERS:
                raise ConfigurationError(
                    f"The scheduler at {self._address} has had no workers for {_WITHOUT_WORKERS:.0f} seconds. Start "
                    "workers, and run the same again: it goes on where it stopped."
                )
        return max(1, self._threads)

    def submit(self, task: Callable[..., Any], *arguments: Any, priority: int = 0) -> Any:
        """The future of a task of `worker`."""
        key = (f"rag-kit-{task.__name__}-{self._run[-32:]}", next(self._numbers))
        return self._client.submit(task, self._run, *arguments, key=key, pure=False, priority=priority)

    def result(self, future: Any) -> Any:
        """What a task gave, when it has ended; ``None`` where a worker died with it.

        Raises:
            ConfigurationError: The scheduler is gone, or there are no workers.
        """
        from distributed import CancelledError, KilledWorker, wait

        while not future.done():
            check_abandoned()
            with suppress(TimeoutError, CancelledError), self._client.as_current():
                wait([future], timeout=1.0)
            _ = self.threads  # raises where there are none
        try:
            return self._client.gather(future)
        except KilledWorker:
            return None
        except (CancelledError, OSError) as error:
            raise self._gone() from error

    def _gone(self) -> ConfigurationError:
        return ConfigurationError(
            f"The scheduler at {self._address} went away. What was committed stays; run the same again, and it goes on "
            "where it stopped."
        )

    def call(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """What a task gives, before tasks that were submitted earlier; again where its worker dies.

        Raises:
            RagKitError: What the task gave.
            ConfigurationError: Its worker died ten times.
        """
        with self._calls:
            for _ in range(_DEATHS_OF_A_CALL):
                reply = self.result(self.submit(task, *arguments, priority=10))
                if isinstance(reply, RagKitError):
                    raise reply
                if reply is not None:
                    return reply
        raise ConfigurationError(
            f"{_DEATHS_OF_A_CALL} workers died while they embedded. Do they have memory enough for the model?"
        )

    @contextmanager
    def without_calls(self) -> Iterator[None]:
        """Keep `call` waiting meanwhile, so that a worker that dies can be blamed on one task."""
        permits = 0
        try:
            for permits in range(1, _MOST_CALLS + 1):  # noqa: B007 - released below
                self._calls.acquire()
            yield
        finally:
            self._calls.release(permits)


class ClusterEmbeddings(Embeddings):
    """Embeds documents on workers by a model that each of them has; anything else of it is that model's.

    Args:
        underlying_embeddings: The model.
        cluster: Where to embed.
    """

    def __init__(self, underlying_embeddings: Embeddings, cluster: Cluster) -> None:
        self.underlying_embeddings = underlying_embeddings
        self.recorded_as = embedding_name(underlying_embeddings)
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["underlying_embeddings"], name)

    @property
    def concurrent_batches(self) -> int:
        """How many batches are sent at a time: for each thread of the workers one, and one that waits in its queue."""
        return 2 * self._cluster.threads

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, as an array."""
        vectors: list[list[float]] = self._cluster.call(worker.embed, texts)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, by the model itself."""
        return self.underlying_embeddings.embed_query(text)
