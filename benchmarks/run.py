"""``make bench``: every benchmarks/speed/bench_*.py, each ratio beside its target."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "speed"), str(HERE / "peers")]

from harness import Row

ON_REQUEST = {"memory", "peers", "scale"}  # they take minutes or install packages: only when named


def main() -> int:
    """Run the chosen benchmarks and return 1 when a target was missed."""
    known = sorted(path.stem.removeprefix("bench_") for path in (HERE / "speed").glob("bench_*.py"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"any of: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="smaller inputs and fewer rounds")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.topics) - set(known)):
        parser.error(f"unknown topic {', '.join(unknown)}; known: {', '.join(known)}")
    missed = 0
    for topic in arguments.topics or [topic for topic in known if topic not in ON_REQUEST]:
        print(f"\n{topic}", flush=True)
        rows: list[Row] = importlib.import_module(f"bench_{topic}").run(quick=arguments.quick)
        for row in rows:
            missed += not row.ok
            print(f"  {'ok  ' if row.ok else 'MISS'} {row.ratio:8.2f}x  {row.target:>9}  {row.name}", end="")
            print(f"  ({row.note})" if row.note else "", flush=True)
    print(f"\n{missed} targets missed" if missed else "\nall targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
