"""The tables of docs/benchmarks.md and docs/scale.md that measurements of this folder write, from their result files.

``finished.json`` holds the tables of experiments that ended in a decision: their figures stay, their scripts went.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from measured import RESULTS

BUSY = 0.5  # running processes a core, above which times say too much


def load(name: str) -> Any:
    """Read a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows_of(name: str) -> list[dict[str, Any]]:
    """Read the rows of a result file; older ones are a list, without the commit that they measured."""
    found = load(name)
    return found if isinstance(found, list) else list(found["rows"])


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table; a bar in a cell does not end it."""
    lines = [[cell.replace("|", "\\|") for cell in line] for line in [head, ["---"] * len(head), *rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def all_tables() -> dict[str, str]:
    """Make every table of docs/benchmarks.md, under the name that its marks in the page have."""
    return finished_tables("benchmarks") | {name: make() for name, make in MAKERS.items()}


def finished_tables(page: str) -> dict[str, str]:
    """Make the tables of finished experiments that belong to ``docs/{page}.md``."""
    found = load("finished").items()
    return {name: _finished(entry) for name, entry in found if entry.get("page", "benchmarks") == page}


def _finished(entry: dict[str, Any]) -> str:
    text = markdown(entry["head"], entry["rows"])
    return f"{text}\n\n{entry['note']}" if "note" in entry else text


def interval(cell: dict[str, float] | None) -> str:
    """Write a value with its interval: ``.687 [.640, .731]``, or a dash."""
    return "–" if cell is None else "{value:.3f} [{low:.3f}, {high:.3f}]".format(**cell)


def citations() -> str:
    """Write the statuses of statements as shares, a row a kind of statement and set."""
    shares = ["passed", "flagged", "undecided", "false alarms", "misses"]
    rows = []
    for row in rows_of("citations"):
        cells = [f"{100 * row[name]:.1f}%" if name in row else "" for name in shares]
        rows.append([row["what"], row["set"], f"{row['statements']:,}", *cells])
    return markdown(["statements", "of", "number", *shares], rows)


def scorer() -> str:
    """Write how far each scorer agrees with the labels, on each set and kind of claim."""
    head = ["scorer", "claims", "scored", "share supported", "balanced accuracy", "ROC-AUC", "Cohen's kappa"]
    rows = []
    for name, entry in load("scorer").items():
        for number, row in enumerate(entry["rows"]):
            measures = [interval(row[key]) for key in ("balanced_accuracy", "auc", "kappa")]
            counts = [f"{row['scored']:,} of {row['claims']:,}", f"{row['supported']:.0%}"]
            rates = [f"{row[key]:.0%}" for key in ("true_positive_rate", "true_negative_rate")]
            rows.append(["" if number else name, row["task"], *counts, *measures, *rates])
    return markdown([*head, "of the supported, accepted", "of the others, refused"], rows)


def labels() -> str:
    """Write how often intervals with labels cover, a row a set, judge, and mean or difference."""
    head = ["set", "judge", "of", "truth", "judge says", "judge's interval covers", "10 labels cover"]
    by_key: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for row in rows_of("labels"):
        by_key.setdefault((row["set"], row["judge_name"], row["what"]), []).append(row)
    rows = [
        [*key, f"{found[0]['truth']:.3f}", f"{found[0]['judge']:.3f}", f"{found[0]['judge_coverage']:.1%}",
         *(f"{row['coverage']:.1%}" for row in found), f"{found[-1]['width']:.3f}"]
        for key, found in by_key.items()
    ]  # fmt: skip
    return markdown([*head, "20 labels cover", "60 labels cover", "width with 60"], rows)


def graphs() -> str:
    """Write right, wrong and declined answers, a row a graph and set."""
    head = [
        "set",
        "graph",
        "right",
        "right beside plain, of all questions",
        "declined rightly",
        "beside plain",
    ]
    rows = []
    before = None
    for row in rows_of("graphs"):
        cells = [_share(row["right"]), _gain(row["right_beside_plain"])]
        cells += [_share(row["declined_rightly"]), _gain(row["declined_beside_plain"])]
        cells += [_share(row["wrong"]), _share(row["declined_wrongly"]), f"{row['calls']:.1f}"]
        rows.append([row["set"] if row["set"] != before else "", row["graph"], *cells])
        before = row["set"]
    return markdown([*head, "wrong", "declined wrongly", "model calls a question"], rows)


def _share(share: dict[str, Any]) -> str:
    known = share["value"] is not None
    return "{value:.1%} [{low:.1%}, {high:.1%}] of {of}".format(**share) if known else "–"


def _gain(share: dict[str, Any]) -> str:
    known = share["value"] is not None
    return "{value:+.1%} [{low:+.1%}, {high:+.1%}]".format(**share) if known else "–"


def scale() -> str:
    """Write a large index beside bm25s and Chroma, how long it took and how busy the machine was."""
    result = load("scale")
    rows = [[row["name"], f"{row['ratio']:.3g}", row["target"], row["note"]] for row in result["rows"]]
    text = f"One run of {result['minutes']} minutes, all sides together in at most {result['gigabytes']} GB."
    if result["load_per_cpu"] > 1:  # its own threads keep about one process a core running
        text += (
            f" Other work ran beside it ({result['load_per_cpu']} running processes a core): the seconds are far too "
            "long, and what was timed minutes apart (build, open) is off by as much as the load changed meanwhile."
        )
    return f"{markdown(['measured', 'ratio', 'limit', 'in figures'], rows)}\n\n{text}"


def peers() -> str:
    """Write the kit beside LlamaIndex and Haystack, a row a measurement of the kit; the lowest ratio is bold."""
    result = load("peers")
    sides = result["sides"]
    rows = []
    for what in sides[0]["figures"]:
        figures = [side["figures"].get(what) for side in sides]
        best = min(figure for figure in figures if figure is not None)
        yardstick = "a bare dict loop" if what.startswith("fusion") else "the critical path"
        rows.append([what, yardstick, *(_ratio(figure, best) for figure in figures)])
    text = f"Medians of {result['rounds']} rounds, each side in an environment of its own."
    if (busy := result.get("load_per_cpu") or 0) > BUSY:
        text += f" The machine was shared ({busy:.1f} running processes a core): ratios near 1 are within its noise."
    head = ["measured", "as a multiple of", *(f"{side['name']} {side['version']}" for side in sides)]
    return f"{markdown(head, rows)}\n\n{text}"


def _ratio(figure: float | None, best: float) -> str:
    if figure is None:
        return "–"
    return f"**{figure:.2f}**" if figure == best else f"{figure:.2f}"


def spelling() -> str:
    """Write nDCG@10 of questions as they are and misspelt, searched as typed and corrected, a row a set."""
    columns = ["clean, as typed", "clean, corrected", "misspelt, as typed", "misspelt, corrected"]
    rows = [
        [row["set"], f"{row['questions']:,}", *(f"{row[name]:.3f}" for name in columns)]
        for row in rows_of("spelling")
    ]
    return markdown(["set", "questions", *columns], rows)


def front() -> str:
    """Write the figures of the first page: the kit beside LlamaIndex, Haystack, bm25s and langchain-chroma."""
    sides = load("peers")["sides"]
    ratios = {row["name"]: row["ratio"] for row in rows_of("scale")}
    head = ["time of", "1 is", "rag_kit", *(f"{side['name']} {side['version']}" for side in sides[1:])]
    rows = []
    for measured, name, unit in (
        ("fusion 8 x 1000", "fusing 8 lists of 1,000", "a bare dict loop"),
        ("multi-query 20, async", "a search with 20 queries", "the critical path"),
    ):
        figures = [side["figures"][measured] for side in sides]
        rows.append([name, unit, *(_ratio(figure, min(figures)) for figure in figures)])
    for measured, name, unit in (
        ("keyword query against bm25s", "a keyword query, 1,000,000 documents", "bm25s"),
        (
            "dense query against langchain-chroma, 10% of the rows",
            "a filtered vector query, 200,000 passages",
            "langchain-chroma",
        ),
    ):
        rows.append([name, unit, f"{ratios[measured]:.2f}", "", ""])
    return markdown(head, rows)


MAKERS: dict[str, Callable[[], str]] = {
    "citations": citations,
    "labels": labels,
    "scorer": scorer,
    "graphs": graphs,
    "scale": scale,
    "spelling": spelling,
    "peers": peers,
}
