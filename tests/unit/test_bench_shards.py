"""The simulation of queries to many shards: queues and hedges as worked out by hand, and the same numbers again."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks" / "speed"))
    import bench_shards

    monkeypatch.delitem(sys.modules, "bench_shards")
    return bench_shards


def test_requests_wait_for_their_replica_and_hedges_for_the_other(bench: ModuleType) -> None:
    """One shard, three queries at 0, 1 and 2; each takes 5 where it is sent first and 1 at the other replica."""
    arrivals, takes = np.array([0.0, 1.0, 2.0]), np.array([[[5.0], [1.0]]] * 3)
    plain, hedges = bench.replies(arrivals, takes, None)
    assert plain.ravel().tolist() == [5, 5, 8] and hedges == 0  # the third waits for the first
    hedged, hedges = bench.replies(arrivals, takes, 4.5, 1.0)
    # the first may not, for hedges are a share of the requests before; the second asks at 5.5 a replica that is busy
    # until 10, in vain; the third at 6.5 one that is free since 6, and has its reply at 7.5 in place of 10
    assert hedged.ravel().tolist() == [5, 5, 5.5] and hedges == pytest.approx(2 / 3)


def test_hedges_are_bounded_and_runs_repeat(bench: ModuleType) -> None:
    """Few are added at a load that leaves time, never more than the bound, and a second run gives the same."""
    quantiles = [10.0 + step / 10 for step in range(101)]
    found = bench.case(quantiles, 0.2, 2_000)
    assert found == bench.case(quantiles, 0.2, 2_000)
    assert 0.02 < found["added"] <= bench.HEDGED
    assert (
        found["plain"]["1"][1] < found["plain"]["100"][1]
        and found["hedged"]["100"][1] < found["plain"]["100"][1]
    )
