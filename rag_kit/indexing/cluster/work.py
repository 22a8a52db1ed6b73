"""One run on a cluster: files converted and texts embedded on workers, results in order, dead workers survived."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit._redact import error_text
from rag_kit.concurrency.pool import check_abandoned
from rag_kit.errors import ConfigurationError, RagKitError, ReadError
from rag_kit.indexing.cluster import worker
from rag_kit.indexing.document_index.writing import SourceRecord
from rag_kit.indexing.files import SourceFile
from rag_kit.models.embedding import embedding_name

_REGISTER_ATTEMPTS = 5
_MAX_CALL_DEATHS = 10  # of workers in one call to embed
_MAX_FILE_DEATHS = 3  # of workers that read one file
_LOOK_SECONDS = 5.0  # between two counts of the workers
_MAX_IDLE_SECONDS = 300.0  # without workers
_MIN_SUBMITTED = 64  # files at a time
_SUBMITTED_PER_THREAD = 8  # of the workers, at least


@contextmanager
def on_cluster(client: Any, parts: worker.WorkerParts) -> Iterator[Cluster]:
    """Send the parts of a run to the workers, and remove them afterwards; yield the cluster to submit tasks to."""
    from cloudpickle import dumps  # as Dask does, but Dask would log what it cannot pickle, such as a model

    run = f"rag-kit-{uuid.uuid4().hex}"
    for name, part in vars(parts).items():
        try:
            dumps(part)
        except Exception as error:
            raise ConfigurationError(
                f"{name}={type(part).__name__} cannot be sent to workers ({error_text(error, max_chars=200)}). Give "
                "one that can be pickled, without open connections or locks, or leave workers= and scheduler= out."
            ) from error
    cluster = Cluster(client, run)
    try:
        _register(client, parts, run)
        yield cluster
    except Exception as error:
        if client.status != "closed":
            raise
        raise cluster._unreachable() from error
    finally:
        # the cluster may be gone; a closed client has no scheduler, which is an AttributeError
        with suppress(OSError, KeyError, RuntimeError, ValueError, AttributeError):
            client.unregister_worker_plugin(run)


def _register(client: Any, parts: worker.WorkerParts, run: str) -> None:
    """Send the parts to the workers; if one dies meanwhile, try again after a second, `_REGISTER_ATTEMPTS` in all."""
    for attempt in range(1, _REGISTER_ATTEMPTS + 1):
        try:
            client.register_plugin(parts, name=run)
            return
        except ConfigurationError:  # a worker of other versions says so itself
            raise
        except Exception as error:
            if not isinstance(error, OSError) or attempt == _REGISTER_ATTEMPTS:
                raise ConfigurationError(
                    f"A worker cannot take part ({error_text(error, max_chars=500)}). All need {worker.versions()}, "
                    "and the packages of readers and models."
                ) from error
            time.sleep(1)


class Cluster:
    """The tasks of one run; workers keep its parts under its name."""

    def __init__(self, client: Any, run: str) -> None:
        self._client = client
        self._run = run
        self._address = getattr(client.scheduler, "address", "?")
        self._numbers = count()  # for the keys of tasks
        self._threads, self._counted_at, self._workers_seen_at = 0, 0.0, time.monotonic()

    def threads(self) -> int:
        """Return how many threads all workers have, at least 1; raise an error after five minutes without any."""
        now = time.monotonic()
        if now - self._counted_at <= _LOOK_SECONDS:
            return max(1, self._threads)  # the last count will do
        try:
            self._counted_at, self._threads = now, sum(self._client.nthreads().values())
        except OSError as error:
            raise self._unreachable() from error
        if self._threads:
            self._workers_seen_at = now
        elif now - self._workers_seen_at > _MAX_IDLE_SECONDS:
            raise ConfigurationError(
                f"The scheduler at {self._address} has had no workers for {_MAX_IDLE_SECONDS:.0f} seconds. Start "
                "workers, and run the same again: it goes on where it stopped."
            )
        return max(1, self._threads)

    def submit(self, task: Callable[..., Any], *arguments: Any, priority: int = 0) -> Any:
        """Submit a task of `worker`; return its future."""
        key = (f"rag-kit-{task.__name__}-{self._run[-32:]}", next(self._numbers))
        return self._client.submit(task, self._run, *arguments, key=key, pure=False, priority=priority)

    def wait(self, future: Any) -> None:
        """Wait until a task has ended or its worker has died; raise an error after five minutes without workers."""
        from distributed import CancelledError, wait

        while not future.done():
            check_abandoned()
            with suppress(TimeoutError, CancelledError), self._client.as_current():
                wait([future], timeout=1.0)
            self.threads()  # for its error

    def result(self, future: Any) -> Any:
        """Return the result of a task; ``None`` if a worker died with it."""
        from distributed import CancelledError, KilledWorker

        self.wait(future)
        try:
            return self._client.gather(future)
        except KilledWorker:
            return None
        except (CancelledError, OSError) as error:
            raise self._unreachable() from error

    def _unreachable(self) -> ConfigurationError:
        return ConfigurationError(
            f"The scheduler at {self._address} went away, or its client was closed. What was committed stays; run the "
            "same again, and it goes on where it stopped."
        )


class ClusterConverter:
    """A `Converter` on workers: some files are submitted ahead of the one asked for.

    When a worker dies, Dask blames all its tasks. Their files are tried again alone, with no other task on the workers:
    so a file that three workers died of is known for sure, and no other one is left out.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._coming: Iterator[SourceFile] = iter(())
        self._futures: deque[Any] = deque()

    def close(self) -> None:
        """Let go of the tasks: Dask drops those whose futures are gone."""
        self._futures.clear()

    def expect(self, files: Iterable[SourceFile]) -> None:
        """Note the files that will be asked for, in order."""
        self._coming = iter(files)

    def convert(self, file: SourceFile) -> tuple[list[Document], SourceRecord, list[str]]:
        """Convert the next expected file to chunks, record and notes; raise ReadError if three workers died with it."""
        max_submitted = max(_MIN_SUBMITTED, _SUBMITTED_PER_THREAD * self._cluster.threads())
        for coming in islice(self._coming, max(0, max_submitted - len(self._futures))):
            self._futures.append(self._cluster.submit(worker.convert, coming))
        future, deaths = self._futures.popleft(), 0  # the first is that of ``file``
        while (outcome := self._cluster.result(future)) is None:  # a worker died with it
            deaths += int(future.exception().allowed_failures) + 1  # so many deaths let Dask give up
            if deaths >= _MAX_FILE_DEATHS:
                raise ReadError(
                    f"the worker that read it died {deaths} times. Mend its reader, or give workers more memory."
                )
            for other in self._futures:
                self._cluster.wait(other)  # so that the file is alone on the workers
            future = self._cluster.submit(worker.convert, file)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[no-any-return]


class ClusterEmbeddings(Embeddings):
    """Embeds documents by a model on each worker; everything else is the model's own."""

    def __init__(self, underlying_embeddings: Embeddings, cluster: Cluster) -> None:
        self.underlying_embeddings = underlying_embeddings
        self.recorded_as = embedding_name(underlying_embeddings)
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["underlying_embeddings"], name)

    @property
    def concurrent_batches(self) -> int:
        """Return how many batches are sent at a time: for each thread of the workers one, and one waiting."""
        return 2 * self._cluster.threads()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts on a worker, with priority over files, again if it dies; return an array, or raise its error."""
        for _ in range(_MAX_CALL_DEATHS):
            vectors = self._cluster.result(self._cluster.submit(worker.embed, texts, priority=10))
            if isinstance(vectors, RagKitError):
                raise vectors
            if vectors is not None:
                return vectors  # type: ignore[no-any-return]
        raise ConfigurationError(
            f"{_MAX_CALL_DEATHS} workers died while they embedded. Do they have memory enough for the model?"
        )

    def embed_query(self, text: str) -> list[float]:
        """Embed a query by the model itself, in this process."""
        return self.underlying_embeddings.embed_query(text)
