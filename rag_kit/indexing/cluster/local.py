"""``python -m rag_kit.indexing.cluster.local WORKERS``: a cluster on this machine until standard input ends.

So it ends also when the process that started it is killed. Workers are started from this module and not from the
caller's script, which therefore needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

_LOOK_MS = 2_000


def main() -> None:
    """Write the scheduler's address to standard output, then serve."""
    from distributed import LocalCluster

    workers = int(sys.argv[1])
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.ERROR,
    ) as cluster:
        keep_workers(cluster, workers)
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


def keep_workers(cluster: Any, workers: int) -> None:
    """Start a worker anew where Dask has given one up, as it does with those that die while they start."""
    from distributed.core import Status
    from tornado.ioloop import PeriodicCallback

    def look() -> None:
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        cluster.scale(workers)

    cluster.loop.add_callback(PeriodicCallback(look, _LOOK_MS).start)


if __name__ == "__main__":
    main()
