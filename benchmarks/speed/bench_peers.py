"""Fusion and multi-query search of the kit, LlamaIndex and Haystack, each in an environment of its own.

Installs packages, so `make bench` runs it only when asked: `make bench BENCH=peers`. The environments stay in
benchmarks/results/local/peers; a change of a requirements file makes them anew. UV=path names uv; without it, pip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import Row
from measured import RESULTS, save

HERE = Path(__file__).resolve().parent.parent
PEERS = HERE / "peers"
LOCAL = RESULTS / "local" / "peers"
NAMES = ("llama_index", "haystack")
# No peer may send anything about this run.
QUIET = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "OPENBLAS_NUM_THREADS": "1",
}
LIMITS = {"fusion 8 x 1000": 2.0, "multi-query 5": 1.05, "multi-query 20": 1.05}


def run(quick: bool = False) -> list[Row]:
    """Measure all sides; writes benchmarks/results/peers.json unless quick."""
    rounds = 5 if quick else 15
    sides = [_measure(Path(sys.executable), "rag_kit", rounds)]
    sides += [_measure(_environment(name), name, rounds) for name in NAMES]
    if not quick:
        load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 2) if hasattr(os, "getloadavg") else None
        save(RESULTS / "peers.json", {"rounds": rounds, "load_per_cpu": load, "sides": sides})
    ours = sides[0]["figures"]
    rows = []
    for what, mine in ours.items():
        limit = LIMITS[what.split(",")[0]]
        yardstick = "bare dict loop" if what.startswith("fusion") else "critical path"
        rows.append(Row(f"rag_kit, {what} / {yardstick}", mine, f"<= {limit:g}", mine <= limit))
        for side in sides[1:]:
            if (theirs := side["figures"].get(what)) is not None:
                name = f"{side['name']} {side['version']}, {what} / {yardstick}"
                rows.append(Row(name, theirs, "-", True, f"{theirs / mine:.2f}x rag_kit's"))
    return rows


def _measure(python: Path, name: str, rounds: int) -> dict[str, Any]:
    done = _run([str(python), str(PEERS / f"side_{name}.py"), str(rounds)], f"measuring {name}")
    side: dict[str, Any] = json.loads(done.splitlines()[-1])
    side["figures"] = {what: round(ratio, 3) for what, ratio in side["figures"].items()}
    return side


def _environment(name: str) -> Path:
    """The interpreter of a peer's environment, made if it is not there as wanted."""
    folder, wanted = LOCAL / name, PEERS / f"requirements-{name}.txt"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted.read_text(encoding="utf-8"):
        return python
    print(
        f"  installing {wanted.read_text(encoding='utf-8').strip()} into {folder.relative_to(HERE.parent)}",
        flush=True,
    )
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], f"making the environment of {name}")
    uv = os.environ.get("UV") or shutil.which("uv")
    install = [uv, "pip", "install", "--quiet", "--python", str(python)] if uv else [str(python), "-m", "pip"]
    install += [] if uv else ["install", "--quiet", "--disable-pip-version-check"]
    _run([*install, "-r", str(wanted)], f"installing {name}")
    stamp.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")
    return python


def _run(command: list[str], what: str) -> str:
    done = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stderr[-2000:]}")
    return done.stdout
