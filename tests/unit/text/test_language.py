from __future__ import annotations

import pytest

from rag_kit.text import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("What is BM25?", "en"),
        ("什么是 BM25？", "zh"),
        ("使用GPT-4o和LangChain构建RAG", "zh"),
        ("LangChain 中文文档", "zh"),
        ("漢語", "zh"),
        ("Who wrote 红楼梦?", "en"),
        ("What does 你好 mean in English?", "en"),
        ("東京は日本の首都です", "en"),
        ("Привет, мир", "en"),
        ("一段很长的中文说明，其中引用了 to be or not to be 这句话，并且继续解释它的意思和来源。", "zh"),
    ],
)
def test_dominant_language(text: str, language: str) -> None:
    """Script decides, and English grammar where scripts mix."""
    assert detect_language(text) == language
