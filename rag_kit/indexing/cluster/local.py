"""``python -m rag_kit.indexing.cluster.local WORKERS``: a cluster on this machine until standard input ends.

So it ends also when the process that started it is killed. Workers are started from this module and not from the
caller's script, which therefore needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Write the scheduler's address to standard output, then serve."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.ERROR,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
