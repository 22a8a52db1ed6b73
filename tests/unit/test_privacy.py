"""Nothing phones home unless the user says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_kit import TELEMETRY_OFF


def run(program: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in TELEMETRY_OFF and name != "CI"}
    clean |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment}
    return subprocess.run([sys.executable, "-c", program], env=clean, capture_output=True, text=True)


_SESSION = """
import {first}
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
    done = run(_SESSION.format(first="rag_kit"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_setting_of_the_user_is_kept(tmp_path: Path) -> None:
    """A variable that is set already stays as it is."""
    done = run(
        "import os, rag_kit; print(os.environ['ANONYMIZED_TELEMETRY'])", tmp_path, ANONYMIZED_TELEMETRY="True"
    )
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("name", sorted(TELEMETRY_OFF))
def test_importing_the_package_sets_the_switch(name: str, tmp_path: Path) -> None:
    """Each switch is set by `import rag_kit` alone."""
    done = run(f"import os, rag_kit; print(os.environ[{name!r}])", tmp_path)
    assert done.stdout.strip() == TELEMETRY_OFF[name]
