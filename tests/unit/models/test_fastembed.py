# ruff: noqa: E402 - skipped first where fastembed is not installed
"""Local models by fastembed: its own classes load tiny ONNX models that are made here in place of the hub's weights."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastembed")
onnx = pytest.importorskip("onnx")

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from rag_kit.errors import ConfigurationError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.models import embedding_model
from rag_kit.models.embedding import embedding_name, recorded_embedding_model
from rag_kit.models.fastembed import (
    FastEmbedCrossEncoder,
    FastEmbedEmbeddings,
    FastEmbedLateInteraction,
    sparse_encoders,
)
from rag_kit.retrieval import BM25Retriever, RerankRetriever, SparseRetriever
from rag_kit.retrieval.rerank.scorers import CrossEncoderReranker

SPECIAL = ["[PAD]", "[Q]", "[D]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NOTES = ["the pump starts at forty degrees", "the fan is loud", "风扇噪音很大"]
WORDS = [*" ".join([*NOTES[:2], "when does start how a"]).split(), *"水泵风扇在四十度时启动噪音很大什么候"]


def folder(path: Path, file: str, nodes: list[Any], shape: list[Any], *constants: tuple[str, Any]) -> Path:
    """A model's folder as the hub has it: the graph, and a tokenizer that splits words and Chinese characters."""
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys([*SPECIAL, *WORDS]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    target = path / file
    target.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    tokens = {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (path / "special_tokens_map.json").write_text(json.dumps(tokens))
    (path / "tokenizer_config.json").write_text(json.dumps({**tokens, "model_max_length": 64}))
    (path / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    one_hot = np.eye(len(vocabulary), dtype=np.float32)
    one_hot[: len(SPECIAL)] = 0  # what is no word has no vector
    initializers = [
        numpy_helper.from_array(np.asarray(value), name) for name, value in (("words", one_hot), *constants)
    ]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["words", "input_ids"], ["each"]), *nodes],
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(target))
    return path


def per_word(path: Path, file: str) -> Path:
    """A model that gives each word its own direction: a sparse and a late-interaction model."""
    return folder(
        path, file, [helper.make_node("Identity", ["each"], ["out"])], ["batch", "tokens", len(WORDS)]
    )


def dense(path: Path) -> Path:
    """A model whose first token holds the mean of all words."""
    mean = helper.make_node("ReduceMean", ["each"], ["mean"], axes=[1], keepdims=1)
    return folder(
        path,
        "model_optimized.onnx",
        [mean, helper.make_node("Identity", ["mean"], ["out"])],
        ["batch", 1, len(WORDS)],
    )


def pairs(path: Path) -> Path:
    """A model that counts how often words come twice in a pair of texts."""
    nodes = [
        helper.make_node("ReduceSum", ["each", "axis"], ["counts"], keepdims=0),
        helper.make_node("Mul", ["counts", "counts"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "axis"], ["all"], keepdims=1),
        helper.make_node("ReduceSum", ["counts", "axis"], ["length"], keepdims=1),
        helper.make_node("Sub", ["all", "length"], ["out"]),
    ]
    return folder(path, "onnx/model.onnx", nodes, ["batch", 1], ("axis", np.array([1], dtype=np.int64)))


def test_an_index_by_a_local_model_is_opened_by_its_name(tmp_path: Path) -> None:
    """embedding_model("fastembed:...") embeds, an index records the name, and a copy on a thread gives the same."""
    settings = {"specific_model_path": str(dense(tmp_path / "model"))}
    model = embedding_model("fastembed:BAAI/bge-small-zh-v1.5", **settings)
    assert model is not None and embedding_name(model) == "fastembed:BAAI/bge-small-zh-v1.5"
    (tmp_path / "docs").mkdir()
    for number, note in enumerate(NOTES):
        (tmp_path / "docs" / f"{number}.txt").write_text(note, encoding="utf-8")
    ingest(tmp_path / "docs", tmp_path / "index", embeddings=model)
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        assert index.stats()["vectors"] == 3
    again = recorded_embedding_model("fastembed:BAAI/bge-small-zh-v1.5", **settings)
    assert again is not None
    vectors = asyncio.run(again.aembed_documents(NOTES))
    copy = pickle.loads(pickle.dumps(model))
    for note, vector in zip(NOTES, vectors, strict=True):
        np.testing.assert_allclose(copy.embed_query(note), vector, atol=1e-6)
    near = np.array(vectors) @ np.array(again.embed_query("风扇噪音"))
    assert near.argmax() == 2


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_rerankers(late: bool, asynchronous: bool, tmp_path: Path) -> None:
    """A cross-encoder and a late-interaction model put the passage first that shares the words, in both languages."""
    model: Any
    if late:
        path = per_word(tmp_path, "model.onnx")
        model = FastEmbedLateInteraction("colbert-ir/colbertv2.0", specific_model_path=str(path))
    else:
        model = FastEmbedCrossEncoder("BAAI/bge-reranker-base", specific_model_path=str(pairs(tmp_path)))
    documents = BM25Retriever.from_texts([*NOTES, "水泵在四十度时启动"], k=4)
    retriever = RerankRetriever(retriever=documents, reranker=CrossEncoderReranker(model), k=1)
    for question, expected in (
        ("the pump is loud the fan is loud", NOTES[1]),
        ("水泵启动 风扇噪音很大", NOTES[2]),
    ):
        found = asyncio.run(retriever.ainvoke(question)) if asynchronous else retriever.invoke(question)
        assert [document.page_content for document in found] == [expected]


def test_sparse_encoders(tmp_path: Path) -> None:
    """A SPLADE model is both encoders of a SparseRetriever; terms that a text lacks weigh nothing."""
    encoders = sparse_encoders(
        "prithivida/Splade_PP_en_v1", specific_model_path=str(per_word(tmp_path, "model.onnx"))
    )
    retriever = SparseRetriever.from_texts(NOTES, **encoders, k=2)
    assert [document.page_content for document in retriever.invoke("how loud is a fan")] == [NOTES[1]]
    assert [document.page_content for document in asyncio.run(retriever.ainvoke("风扇"))] == [NOTES[2]]


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    """An unknown name and damaged files end in one error that says what to do; the network is not asked."""
    with pytest.raises(ConfigurationError, match="list_supported_models"):
        embedding_model("fastembed:no/such-model")
    (tmp_path / "tokenizer.json").write_text("{")
    broken = FastEmbedEmbeddings("BAAI/bge-small-zh-v1.5", specific_model_path=str(tmp_path))
    with pytest.raises(ConfigurationError, match="FASTEMBED_CACHE_PATH"):
        broken.embed_query("fan")
