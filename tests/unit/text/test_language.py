from __future__ import annotations

import pytest

from rag_kit.text import detect_language
from rag_kit.text.language import cache_of_texts


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


def test_results_of_long_texts_are_not_cached() -> None:
    """A short text is computed once, a long one each time."""
    asked: list[int] = []

    @cache_of_texts(10, longest=5)
    def length(text: str) -> int:
        asked.append(len(text))
        return len(text)

    assert [length("short"), length("short"), length("longer"), length("longer")] == [5, 5, 6, 6]
    assert asked == [5, 6, 6]
