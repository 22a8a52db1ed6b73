"""The ONNX graph of a BERT sentence encoder, built from the published weights of 32 or 4 bits.

Devlin et al., BERT (2019); Wang et al., MiniLM (2020); Reimers and Gurevych, Sentence-BERT (2019).
Here is all after the tokenizer: transformer layers, mean pooling over the attention mask, division by the L2 norm.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADS = 12
HIDDEN = 384
LAYER_NORM_EPS = 1e-12
OPSET = 17
#: The domain of onnxruntime's own operators.
CONTRIB = "com.microsoft"
BLOCK = 32
_FLOAT, _INT32 = 1, 6  # types of tensors, as ONNX numbers them

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Packed:
    """A matrix of 4-bit values: in blocks of 32 a row, ``(value - 8) * scale``, ``j`` and ``j + 16`` in a byte.

    ``values`` is uint8 of shape (rows, blocks, 16), ``scales`` float16 of shape (rows, blocks).
    """

    values: NDArray[np.uint8]
    scales: NDArray[np.float16]

    def neighbours(self) -> NDArray[np.uint8]:
        """Return the 4-bit values packed anew, neighbours ``2j`` and ``2j + 1`` in a byte, as ``MatMulNBits`` wants."""
        # the lower halves of the bytes are values 0 to 15 of a block, the upper halves 16 to 31
        ordered = np.concatenate([self.values & 15, self.values >> 4], axis=2)
        paired: NDArray[np.uint8] = ordered[:, :, ::2] | (ordered[:, :, 1::2] << 4)
        return paired


Weights = Mapping[str, Any]


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read float32 arrays by name: an 8-byte little-endian length, a JSON header, raw tensors."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + length]), memoryview(data)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


class _Graph:
    """A graph under construction: nodes, and weights under unique names; its methods return names of tensors."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}

    def weight(self, name: str, value: NDArray[Any]) -> str:
        if name not in self.weights:
            self.weights[name] = self._numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def scalar(self, value: float) -> str:
        return self.weight(f"const_{value!r}", np.array(value, np.float32))

    def shape(self, *values: int) -> str:
        return self.weight("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def split(self, tensor: str, *sizes: int) -> list[str]:
        """Add a node that splits a tensor along its last axis; return the names of the parts."""
        outputs = [f"{tensor}_part{number}" for number in range(len(sizes))]
        self.nodes.append(self._helper.make_node("Split", [tensor, self.shape(*sizes)], outputs, axis=-1))
        return outputs


def _dense(graph: _Graph, tensor: str, name: str, kernel: Array | Packed, bias: Array) -> str:
    """Add a dense layer, the product with a kernel of shape (outputs, inputs) plus a bias; return its output's name."""
    if isinstance(kernel, Packed):
        values = graph.weight(f"{name}.kernel", kernel.neighbours())
        scales = graph.weight(f"{name}.scales", kernel.scales.astype(np.float32).reshape(-1))
        rows, blocks, _ = kernel.values.shape
        sizes = {"K": blocks * BLOCK, "N": rows, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        product = graph.add("MatMulNBits", tensor, values, scales, domain=CONTRIB, **sizes)
    else:  # MatMul wants (inputs, outputs)
        product = graph.add("MatMul", tensor, graph.weight(f"{name}.kernel", kernel.T))
    return graph.add("Add", product, graph.weight(f"{name}.bias", bias))


def _look_up_rows(graph: _Graph, table: Array | Packed) -> str:
    """Add the look-up of the tokens' rows in the table of word embeddings; packed rows are unpacked on the way."""
    if not isinstance(table, Packed):
        return graph.add("Gather", graph.weight("words", table), "input_ids")
    pairs = graph.add("Gather", graph.weight("words", table.values), "input_ids")  # two values in a byte
    upper = graph.add("BitShift", pairs, graph.weight("four", np.array(4, np.uint8)), direction="RIGHT")
    pairs, upper = (graph.add("Cast", part, to=_FLOAT) for part in (pairs, upper))
    lower = graph.add("Sub", pairs, graph.add("Mul", upper, graph.scalar(16.0)))
    values = graph.add("Concat", lower, upper, axis=-1)
    values = graph.add("Sub", values, graph.scalar(8.0))  # 0..15 stand for -8..7
    scales = graph.add("Gather", graph.weight("word_scales", table.scales), "input_ids")
    scales = graph.add("Cast", scales, to=_FLOAT)
    scaled = graph.add("Mul", values, graph.add("Unsqueeze", scales, graph.shape(3)))
    return graph.add("Reshape", scaled, graph.shape(0, 0, HIDDEN))


def _norm(graph: _Graph, tensor: str, name: str, weights: Weights, *, add: str) -> str:
    """Add the layer norm of the sum of two tensors, ``tensor`` and ``add``; return its output's name."""
    parts = [graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias")]
    return graph.add("SkipLayerNormalization", tensor, add, *parts, domain=CONTRIB, epsilon=LAYER_NORM_EPS)


def _add_layer(graph: _Graph, tensor: str, number: int, mask: str, weights: Weights) -> str:
    """Add one transformer layer: attention, then the feed-forward part, each with its residual and norm."""

    def dense(tensor: str, name: str) -> str:
        return _dense(graph, tensor, name, weights[f"{name}.weight"], weights[f"{name}.bias"])

    prefix = f"encoder.layer.{number}"
    parts = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
    # One product for query, key and value: a third of the calls, same numbers.
    kernels = [weights[f"{part}.weight"] for part in parts]
    if isinstance(kernels[0], Packed):
        values = np.concatenate([kernel.values for kernel in kernels])
        kernel: Any = Packed(values, np.concatenate([kernel.scales for kernel in kernels]))
    else:
        kernel = np.concatenate(kernels)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    projected = _dense(graph, tensor, f"{prefix}.qkv", kernel, bias)
    query_key_value = graph.split(projected, HIDDEN, HIDDEN, HIDDEN)
    context = graph.add("MultiHeadAttention", *query_key_value, "", mask, domain=CONTRIB, num_heads=HEADS)
    context = dense(context, f"{prefix}.attention.output.dense")
    tensor = _norm(graph, context, f"{prefix}.attention.output.LayerNorm", weights, add=tensor)
    inner = graph.add("Gelu", dense(tensor, f"{prefix}.intermediate.dense"), domain=CONTRIB)
    output = dense(inner, f"{prefix}.output.dense")
    return _norm(graph, output, f"{prefix}.output.LayerNorm", weights, add=tensor)


def build_graph(weights: Weights) -> bytes:
    """Build the serialised ONNX model from weights under the names of BERT; matrices may be `Packed`.

    In: ``input_ids``, ``attention_mask``, int64 (batch, tokens). Out: ``embedding``, float32 (batch, 384), unit rows.
    """
    graph = _Graph()
    float_mask = graph.add("Cast", "attention_mask", to=_FLOAT)
    int_mask = graph.add("Cast", "attention_mask", to=_INT32)
    tensor = _embed_tokens(graph, weights)
    layers = sum(name.endswith(".attention.self.query.weight") for name in weights)
    for number in range(layers):
        tensor = _add_layer(graph, tensor, number, int_mask, weights)
    _pool(graph, tensor, float_mask)
    return _serialise(graph)


def _embed_tokens(graph: _Graph, weights: Weights) -> str:
    """Add the sum of the embeddings of words, positions and segments, with its norm."""
    words = _look_up_rows(graph, weights["embeddings.word_embeddings.weight"])
    length = graph.add("Slice", graph.add("Shape", "input_ids"), graph.shape(1), graph.shape(2))
    # Positions are 0..tokens-1 and every token is of segment 0, so both tables add up beforehand.
    segments = weights["embeddings.token_type_embeddings.weight"]
    positions = weights["embeddings.position_embeddings.weight"] + segments[0]
    position = graph.add("Slice", graph.weight("places", positions), graph.shape(0), length, graph.shape(0))
    position = graph.add("Expand", position, graph.add("Shape", words))
    return _norm(graph, words, "embeddings.LayerNorm", weights, add=position)


def _pool(graph: _Graph, tensor: str, mask: str) -> None:
    """Add the output: the mean of the tokens' vectors over the mask, divided by its L2 norm."""
    wide = graph.add("Unsqueeze", mask, graph.shape(2))
    total = graph.add("ReduceSum", graph.add("Mul", tensor, wide), graph.shape(1), keepdims=0)
    count = graph.add("Max", graph.add("ReduceSum", wide, graph.shape(1), keepdims=0), graph.scalar(1e-9))
    mean = graph.add("Div", total, count)
    norm = graph.add("ReduceL2", mean, axes=[1], keepdims=1)
    graph.add("Div", mean, graph.add("Max", norm, graph.scalar(1e-12)), name="embedding")


def _serialise(graph: _Graph) -> bytes:
    """Check the graph and write it as a model."""
    from onnx import TensorProto, checker, helper

    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
    outputs = [info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])]
    onnx_graph = helper.make_graph(graph.nodes, "bert", inputs, outputs, list(graph.weights.values()))
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(onnx_graph, producer_name="rag_kit", opset_imports=opsets, ir_version=8)
    checker.check_model(model)
    return bytes(model.SerializeToString())
