"""Connect to a scheduler, or start a cluster on this machine."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from rag_kit import __version__
from rag_kit.errors import ClusterError, InvalidInputError, MissingExtraError

_CONNECT_SECONDS = 15.0
_CLOSE_SECONDS = 3.0
_ENVIRONMENT = {
    # the first death of a worker blames what it held, and what is blamed is tried by itself
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_LOGGING__DISTRIBUTED": "error",
}


def check_cluster(workers: int | None, scheduler: Any) -> bool:
    """Whether a cluster is asked for.

    Raises:
        InvalidInputError: Both are given, or the number of workers is none.
        MissingExtraError: The extra is not installed.
    """
    if workers is not None and scheduler is not None:
        raise InvalidInputError(
            "workers= starts a cluster on this machine, scheduler= names one; give one of them."
        )
    if workers is not None and (type(workers) is not int or workers < 1):
        raise InvalidInputError(f"workers={workers!r} is no number of processes; give 1 or more.")
    if workers is None and scheduler is None:
        return False
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("distributed", "Work on a Dask cluster") from error
    return True


@contextlib.contextmanager
def connected(workers: int | None, scheduler: Any) -> Iterator[Any]:
    """A ``distributed.Client``, closed afterwards unless it was given.

    Args:
        workers: Processes to start on this machine.
        scheduler: The address of a scheduler, or a client.

    Raises:
        ClusterError: There is no scheduler at the address, or it cannot be talked to.
    """
    from distributed import Client

    with contextlib.ExitStack() as stack:
        if workers is not None:
            scheduler = stack.enter_context(_local_cluster(workers))
        client = scheduler
        if not isinstance(scheduler, Client):
            try:
                made = Client(str(scheduler), timeout=_CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
                raise ClusterError(
                    f"No Dask scheduler answers at {scheduler} ({' '.join(str(error).split())[:200]}). Give the "
                    "address that dask scheduler prints, as in tcp://host:8786; one that speaks TLS is tls://host:8786."
                ) from error
            client = stack.enter_context(made)
        _check_versions(client)
        yield client


def versions() -> tuple[str, str]:
    """Versions of Python and rag_kit that client and workers must share."""
    return ".".join(platform.python_version_tuple()[:2]), __version__


def different(address: str, found: tuple[str, str], wanted: tuple[str, str]) -> str:
    """What to say of a worker that has other versions."""
    return (
        f"The worker at {address} has Python {found[0]} and rag_kit {found[1]}; this process has {wanted[0]} and "
        f"{wanted[1]}. Install the same on all machines."
    )


def _check_versions(client: Any) -> None:
    """Compare the versions of the workers that are there.

    Raises:
        ClusterError: One has others, or no rag_kit.
    """
    for address, found in client.run(versions, on_error="return").items():
        if isinstance(found, BaseException):
            raise ClusterError(
                f"The worker at {address} cannot load rag_kit ({type(found).__name__}: {found}). Install rag_kit "
                f"{__version__} with the extra 'distributed' on all machines."
            ) from found
        if found != versions():
            raise ClusterError(different(address, found, versions()))


@contextlib.contextmanager
def _local_cluster(workers: int) -> Iterator[str]:
    """The address of the scheduler of a cluster on this machine, which ends with the context or this process."""
    path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    command = [sys.executable, "-m", "rag_kit.indexing.cluster.local", str(workers)]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**_ENVIRONMENT, **os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the client, which closes the cluster
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().decode().strip()
            if not address:
                process.wait()
                errors.seek(0)
                lines = errors.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
                raise ClusterError(f"The cluster on this machine did not start: {lines[-1][:300]}")
            yield address
        finally:
            process.stdin.close()
            try:
                process.wait(_CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                _kill(process)
            process.stdout.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process of a cluster and its workers."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
