"""Mistakes that users make in public functions are one clear error each, before anything is written."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.indexing import DocumentIndex, ingest, read
from rag_kit.models import chat_model
from rag_kit.retrieval import ExactVectorRetriever, explain, index_retriever, reciprocal_rank_fusion


@pytest.mark.parametrize("paths", ["", None, [None], [""]])
def test_a_path_that_is_none_or_empty_is_refused(paths: Any, tmp_path: Any) -> None:
    """Pathlib takes an empty one for the current folder, all of which would be read."""
    with pytest.raises(InvalidInputError, match="give a path"):
        ingest(paths, tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("function", [read, DocumentIndex.open, DocumentIndex.create])
@pytest.mark.parametrize("path", ["", None])
def test_so_is_that_of_a_file_or_an_index(function: Any, path: Any) -> None:
    """An unset variable is None or empty."""
    with pytest.raises(InvalidInputError, match="give a path"):
        function(path)


def test_a_name_in_place_of_an_embedding_model_is_refused_before_anything_is_written(tmp_path: Any) -> None:
    """An index with the name of a class of strings could not be opened by anybody."""
    (tmp_path / "a.md").write_text("The pump starts.")
    with pytest.raises(InvalidInputError, match="embedding_model"):
        ingest(tmp_path / "a.md", tmp_path / "index", embeddings="openai:text-embedding-3-small")  # type: ignore[arg-type]
    assert ingest(tmp_path / "a.md", tmp_path / "index").added == 1


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (lambda: explain(Document("a")), "list of documents"),  # type: ignore[arg-type]
        (lambda: index_retriever("my-index"), "DocumentIndex.open"),  # type: ignore[arg-type]
        (
            lambda: ExactVectorRetriever.from_documents([Document("a")], None),
            "must be a LangChain Embeddings",
        ),  # type: ignore[arg-type]
        (lambda: reciprocal_rank_fusion([[Document("a")]]), "give keys"),
    ],
)
def test_a_part_of_another_kind_is_named(call: Any, allowed: str) -> None:
    """Errors say what was given and what to give."""
    with pytest.raises(InvalidInputError, match=allowed):
        call()


@pytest.mark.parametrize("name", ["sk-canary-0123456789abcdef", "openai2:sk-canary-0123456789abcdef"])
def test_a_key_in_place_of_a_model_is_masked(name: str) -> None:
    """No message holds a key."""
    with pytest.raises(ConfigurationError) as caught:
        chat_model(name)
    assert "canary" not in str(caught.value)
