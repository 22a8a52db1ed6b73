"""The process that holds a cluster on this machine: ``python -m rag_kit.indexing.cluster.local WORKERS``.

It writes the address of its scheduler to standard output and ends, with its workers, when standard input is closed, so
also when the process that started it is killed. Workers are started from this module and not from the caller's script,
which therefore needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Serve until standard input ends."""
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.ERROR,
    )
    with cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
