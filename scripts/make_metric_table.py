"""Write the table of all metrics into docs/guide/{en,zh}/evaluation-metrics.md, from the metrics themselves.

python scripts/make_metric_table.py            write it
python scripts/make_metric_table.py --check    change nothing; exit 1 when a page is not what the metrics say
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rag_kit.evaluation.metric import Metric  # noqa: E402 - found by the line above
from rag_kit.evaluation.scorers import METRICS, get_metric  # noqa: E402

MARKED = re.compile(
    r"(<!-- begin table: (?P<name>[a-z_]+)[^>]*-->\n).*?(<!-- end table: (?P=name) -->)", re.DOTALL
)
STAGES = ("retrieval", "generation", "end_to_end", "agent")
HEADS = {
    "en": (
        "metric",
        "computed by",
        "reads of the example",
        "reads of the output",
        "asks",
        "range",
        "a decline",
    ),
    "zh": ("指标", "由谁计算", "需要样例的", "需要输出的", "询问", "取值范围", "拒答"),
}
WORDS = {
    "en": {
        "ragas": "Ragas", "ir_measures": "ir-measures", "ours": "this kit", "judge": "judge", "vectors": "vectors",
        "or": " or ", "and": ", ", "nothing": "–", "lower": ", lower is better", "skipped": "undefined",
        "question": "question",
    },
    "zh": {
        "ragas": "Ragas", "ir_measures": "ir-measures", "ours": "本工具包", "judge": "评判模型", "vectors": "向量",
        "or": " 或 ", "and": "、", "nothing": "–", "lower": "，越低越好", "skipped": "无定义", "question": "问题",
    },
}  # fmt: skip


def row(cells: list[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def reads(metric: Metric, words: dict[str, str]) -> str:
    """The fields of the example that the metric cannot do without."""
    needs = [f"`{name}`" for name in sorted(metric.example_needs)]
    if metric.example_any:
        needs.append(words["or"].join(f"`{name}`" for name in sorted(metric.example_any, reverse=True)))
    return words["and"].join(needs) or words["nothing"]


def table(stage: str, language: str) -> str:
    """The metrics of a stage: Ragas's first, then those of ir-measures, then this kit's."""
    words = WORDS[language]
    found = [(name, get_metric(name.replace("@k", "@10"))) for name in METRICS]
    order = {"ragas": 0, "ir_measures": 1, "ours": 2}
    lines = [row(list(HEADS[language])), row(["---"] * len(HEADS[language]))]
    for name, metric in sorted(found, key=lambda pair: order[pair[1].source]):
        if metric.stage != stage:
            continue
        asks = [
            words[what]
            for what, asked in (("judge", metric.needs_judge), ("vectors", metric.needs_embeddings))
            if asked
        ]
        output = words["and"].join(f"`{field}`" for field in sorted(metric.output_needs))
        worth = "" if metric.higher_is_better else words["lower"]
        lines.append(
            row(
                [
                    f"`{name}`", words[metric.source], reads(metric, words), output or words["nothing"],
                    words["and"].join(asks) or words["nothing"], f"{metric.low:g} … {metric.high:g}{worth}",
                    words["skipped"] if metric.skips_declined else words["nothing"],
                ]
            )
        )  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing, say whether the pages are current"
    )
    check = parser.parse_args().check
    stale = 0
    for language in HEADS:
        path = ROOT / "docs" / "guide" / language / "evaluation-metrics.md"
        page = path.read_text(encoding="utf-8")
        seen = {match["name"] for match in MARKED.finditer(page)}
        if seen != set(STAGES):
            raise SystemExit(
                f"{path.name} ({language}) has the tables {sorted(seen)}; it must have {sorted(STAGES)}"
            )

        def fill(match: re.Match[str], language: str = language) -> str:
            return f"{match[1]}\n{table(match['name'], language)}\n\n{match[3]}"

        wanted = MARKED.sub(fill, page)
        if wanted == page:
            continue
        stale += 1
        if check:
            print(
                f"{path.relative_to(ROOT)} is not what the metrics say; run python scripts/make_metric_table.py"
            )
        else:
            path.write_text(wanted, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return int(bool(stale) and check)


if __name__ == "__main__":
    raise SystemExit(main())
