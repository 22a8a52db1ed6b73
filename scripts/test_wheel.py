"""Install the built wheel in a fresh environment, away from the checkout, and use it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a command that must end with the given exit code; returns its stdout."""
    clean = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RAG_KIT_PROMPTS", "RAG_KIT_INDEX")
    }
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(
            f"{' '.join(map(str, command))}\nexit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def main() -> None:
    """Wheel and sdist: prompts are found, the command line runs, the unit tests of prompts and command line pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--constraints", type=Path, required=True)
    parser.add_argument("--uv", type=Path, help="install with this uv instead of pip")
    arguments = parser.parse_args()
    [wheel] = arguments.dist.resolve().glob("*.whl")
    [sdist] = arguments.dist.resolve().glob("*.tar.gz")
    constraints = arguments.constraints.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        pip: tuple[str | Path, ...] = (
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        )
        if arguments.uv:
            pip = (arguments.uv.resolve(), "pip", "install", "--quiet", "--python", python)
        pip = (*pip, "-c", constraints)
        run(*pip, f"{wheel}[test,eval]", cwd=folder)
        where = run(python, "-c", "import rag_kit; print(rag_kit.__file__)", cwd=folder).strip()
        if not Path(where).is_relative_to(folder):
            sys.exit(f"the wheel was to be tested, but {where} was imported")
        command = folder / "env" / "bin" / "rag-kit"
        (folder / "notes").mkdir()
        (folder / "notes" / "pump.md").write_text("# Pump\n\nThe pump starts at forty degrees.\n")
        run(command, "--help", cwd=folder)
        listed = run(command, "prompts", "list", cwd=folder)
        if "answer" not in listed:
            sys.exit(f"the wheel's prompts were not found:\n{listed}")
        run(command, "prompts", "check", cwd=folder)
        run(command, "ingest", "notes", "--index", "index", "--quiet", cwd=folder)
        answer = run(command, "ask", "When does the pump start?", "--index", "index", cwd=folder)
        if "forty degrees" not in answer or "[1]" not in answer:
            sys.exit(f"the installed command gave no answer with a citation:\n{answer}")
        run(command, "ask", "When?", "--index", "nowhere", cwd=folder, code=3)
        tests = folder / "tests"
        run("cp", "-r", ROOT / "tests", ROOT / "docs", folder, cwd=folder)
        pytest = (
            python,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
        )
        options = ("-o", "asyncio_mode=auto", "-m", "not slow")
        folders = [tests / "unit" / name for name in ("prompts", "cli")]
        print(run(*pytest, *options, *folders, cwd=folder).splitlines()[-1])
        # the sdist builds the same wheel
        run(*pip, "--no-deps", "--reinstall" if arguments.uv else "--force-reinstall", sdist, cwd=folder)
        run(command, "prompts", "check", cwd=folder)
    print(f"{wheel.name} and {sdist.name}: installed and used")


if __name__ == "__main__":
    main()
