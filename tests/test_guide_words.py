"""Chinese texts use one word for one thing, that of the table "用词" on the first page of the guide."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted((ROOT / "docs" / "guide" / "zh").glob("*.md")),
    ROOT / "README.zh.md",
    *sorted((ROOT / "notebooks").glob("*.zh.ipynb")),
]
EVALUATION = ROOT / "rag_kit" / "evaluation"
TEXTS = [
    EVALUATION / "reporting" / "assets" / "texts.json",
    EVALUATION / "remedies.json",
    EVALUATION / "sentences.json",
]
PROMPTS = [
    *sorted((ROOT / "prompts").glob("*.zh.prompt")),
    *sorted((ROOT / "prompts" / "ragas").glob("*.zh.yaml")),
]
OTHER_WORDS = ("您", "流水线", "令牌", "重排序器", "嵌入模型", "附加项", "额外依赖", "可选依赖")


def test_one_word_for_one_thing() -> None:
    """None has another word for a pipeline, a token, a reranker, an embedding model, an extra or the reader."""
    for page in (*PAGES, *TEXTS, *PROMPTS):
        text = page.read_text(encoding="utf-8")
        assert [word for word in OTHER_WORDS if word in text] == [], page.name
