"""all-MiniLM-L6-v2 on onnxruntime: English sentence vectors without torch and without a network.

``rag-kit models install minilm`` fetches the weights once; after that nothing here opens a socket.
English only: Chinese text becomes ``[UNK]``, so Chinese needs keyword search or another model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from .embeddings import MiniLMEmbeddings
    from .fetching import install
    from .files import is_installed, model_folder

__all__ = ["MiniLMEmbeddings", "install", "is_installed", "model_folder"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "MiniLMEmbeddings": ".embeddings",
        "install": ".fetching",
        "is_installed": ".files",
        "model_folder": ".files",
    },
)
