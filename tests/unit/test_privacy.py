"""Nothing phones home unless the user says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rag_kit import TELEMETRY_OFF


def run(program: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in TELEMETRY_OFF and name != "CI"}
    clean |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment}
    return subprocess.run([sys.executable, "-c", program], env=clean, capture_output=True, text=True)


_SESSION = """
import rag_kit
import onnxruntime, glob, os
onnxruntime.get_available_providers()
options = onnxruntime.SessionOptions()
try:
    onnxruntime.InferenceSession(b"no model", options)
except Exception:
    pass
print(sorted(glob.glob(os.environ["HOME"] + "/**/deviceid", recursive=True, include_hidden=True)))
"""


def test_onnxruntime_leaves_no_device_id(tmp_path: Path) -> None:
    """After `import rag_kit`, onnxruntime (Chroma imports it) creates no identifier of this device."""
    done = run(_SESSION, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_importing_the_package_sets_each_switch_but_those_that_are_set(tmp_path: Path) -> None:
    """Each is set by `import rag_kit` alone; a variable that the user set stays as it is."""
    program = "import os, rag_kit; print({name: os.environ[name] for name in rag_kit.TELEMETRY_OFF})"
    done = run(program, tmp_path, ANONYMIZED_TELEMETRY="True")
    assert done.stdout.strip() == str({**TELEMETRY_OFF, "ANONYMIZED_TELEMETRY": "True"})
