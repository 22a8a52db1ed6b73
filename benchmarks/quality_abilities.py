"""RGB's four abilities, measured with the embedded model or any other.

    python benchmarks/quality_abilities.py DATA [--model openai:...] [--out FILE]

DATA holds the folder ``rgb`` (en_fact, zh_fact and zh_int of github.com/chen700564/RGB). The result file holds
figures alone: no question and no passage. Then: python scripts/make_tables.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rag_kit.evaluation import abilities
from rag_kit.models import chat_model

RESULT = Path(__file__).resolve().parent / "results" / "abilities.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="extractive", help="a model name as for rag_kit.models.chat_model")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument(
        "--replies", type=Path, help="folder that keeps every reply; a run that ended goes on from it"
    )
    options = parser.parse_args()
    report = abilities(
        chat_model(options.model),
        options.data / "rgb",
        out=options.replies,
        max_concurrency=2,
    )
    print(report)
    options.out.write_text(
        json.dumps({**report.to_json(), "model": options.model}, ensure_ascii=False, indent=1) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
