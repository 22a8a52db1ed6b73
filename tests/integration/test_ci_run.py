"""``.ci/run`` with arguments, and the commands with which a newcomer begins."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["-h"], 0), (["--hlep"], 2), (["check"], 2), (["--help", "x"], 2)],
)
def test_arguments_get_a_usage_line(arguments: list[str], code: int) -> None:
    """Nothing is started: without a PATH whatever it tried to start would be an error."""
    command = [shutil.which("bash") or "bash", str(ROOT / ".ci" / "run"), *arguments]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, timeout=60)
    used, other = (done.stderr, done.stdout) if code else (done.stdout, done.stderr)
    assert (done.returncode, used.count("\n"), other) == (code, 1, "")
    assert used.startswith("usage: .ci/run")


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_both_commands_are_under_try_it(page: str) -> None:
    """``make demo`` and ``make test``, one under the other, in the first block."""
    block = re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)[0]
    commands = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert commands.index("make test") == commands.index("make demo") + 1
