"""Benchmarks of speed run to their end; their figures are not judged, as a machine is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripts import load_script


@pytest.mark.slow
def test_the_parts_of_an_ingest_are_timed(tmp_path: Path) -> None:
    """Reading, embedding and writing have their seconds, the last into the index that was read for."""
    bench = load_script("benchmarks/speed/bench_ingest.py")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pump.note").write_text("The pump starts at 40 degrees.", encoding="utf-8")
    row = bench.case(docs, 1, bench.Waits("parts", reader=0.0, endpoint=0.0, disk=0.0, add=True))
    assert row.ratio > 0 and [part.split()[0] for part in row.note.split(", ")] == ["read", "embed", "write"]
