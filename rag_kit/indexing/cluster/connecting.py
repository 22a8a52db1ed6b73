"""Connect to a scheduler, or start a cluster on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from rag_kit.errors import ConfigurationError

_CONNECT_SECONDS = 15.0
_CLOSE_SECONDS = 3.0
_LOOK_MS = 2_000  # between two looks for workers that Dask has given up
_ENVIRONMENT = {
    # the first death of a worker blames its tasks, and what is blamed is tried by itself
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_LOGGING__DISTRIBUTED": "error",
}


@contextlib.contextmanager
def cluster_client(workers: int | None, scheduler: Any) -> Iterator[Any]:
    """Yield a Dask client: of a new cluster of ``workers`` processes here, or of a scheduler (address or client)."""
    from distributed import Client

    if isinstance(scheduler, Client):
        yield scheduler
        return
    scheduler_address = contextlib.nullcontext(scheduler) if workers is None else _local_cluster(workers)
    with scheduler_address as address:
        try:
            client = Client(str(address), timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
            reason = " ".join(str(error).split())
            where = re.sub(r"\S+@", "***@", f"{address} ({reason})")[:300]  # hides a password
            raise ConfigurationError(
                f"No Dask scheduler answers at {where}. Give the address that dask scheduler prints, as in "
                "tcp://host:8786; one that speaks TLS is tls://host:8786."
            ) from error
        with client:
            yield client


@contextlib.contextmanager
def _local_cluster(workers: int) -> Iterator[str]:
    """Start a cluster on this machine in another process (see `serve`); yield its scheduler's address; end it."""
    python_path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)  # "" is the current folder
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rag_kit.indexing.cluster.connecting", str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**_ENVIRONMENT, **os.environ, "PYTHONPATH": python_path},
            start_new_session=True,  # Ctrl-C is for the client, which closes the cluster
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            if not (address := process.stdout.readline().decode().strip()):
                errors.seek(0)
                lines = errors.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
                raise ConfigurationError(f"The cluster on this machine did not start: {lines[-1][:300]}")
            yield address
        finally:
            process.stdin.close()  # by which `serve` ends; if it does not in time, it is killed with its workers
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSE_SECONDS)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()  # Windows
            process.wait()
            process.stdout.close()


def serve() -> None:
    """Run a cluster on this machine: print its scheduler's address, and end when standard input is closed.

    That also happens when the process that started it is killed. Workers are started from this module and not from the
    caller's script, which therefore needs no ``if __name__ == "__main__"``.
    """
    from distributed import LocalCluster

    workers = int(sys.argv[1])
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.ERROR,
    ) as cluster:
        _keep_workers(cluster, workers)
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()  # waits until it is closed


def _keep_workers(cluster: Any, workers: int) -> None:
    """Look every two seconds for workers that Dask has given up (because they died at their start); restart them."""
    from distributed.core import Status
    from tornado.ioloop import PeriodicCallback

    def restart_lost() -> None:
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        cluster.scale(workers)

    cluster.loop.add_callback(PeriodicCallback(restart_lost, _LOOK_MS).start)


if __name__ == "__main__":
    serve()
