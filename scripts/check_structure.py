"""Check the shape of the code: no circle of files or folders, lines within budgets, docstrings that begin well.

Every import counts, also those inside functions and for types alone. The budgets stand in ``budgets.toml`` beside this
file. A package over its own is printed, and decision 0036 says what it gave up; the sum must hold. The first line of a
docstring begins with a noun or a verb, not as a fragment ("What a file holds", "Of two texts the longer").
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "rag_kit"
FRAGMENT = re.compile(r"(What|Of|Where|Those|That|Its|Neither|Whether it is)\b")
WORDED = ("rag_kit", "graphs", "scripts", "benchmarks", "tests")  # folders whose docstrings are looked at


def module_name(path: Path) -> str:
    """The dotted name of a file's module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, known: set[str]) -> Iterator[str]:
    """Names of the library's modules that a file imports; names of a package lead to the module that holds them."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in known else module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that reach each other (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def folder_of(name: str) -> str:
    """The folder of a package that a module lies in; a file beside such folders counts as one."""
    return ".".join(name.split(".")[:3])


def of_folders(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph of the folders, from that of their files."""
    folders: dict[str, set[str]] = {folder_of(name): set() for name in graph}
    for name, others in graph.items():
        folders[folder_of(name)] |= {folder_of(other) for other in others} - {folder_of(name)}
    return folders


def fragments(path: Path) -> Iterator[str]:
    """First lines of docstrings that begin as a fragment does, each with its place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if FRAGMENT.match(text):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"


def main() -> int:
    """Print sizes, circles and fragments; 1 where something is wrong."""
    sys.setrecursionlimit(10_000)
    files = sorted(LIBRARY.rglob("*.py"))
    # a package's __init__ hands on the names of its modules and imports them when they are used: no step of its own
    names = {module_name(path): path for path in files if path.name != "__init__.py"}
    graph = {
        name: {each for each in imported(path, set(names)) if each in names} for name, path in names.items()
    }
    wrong = False
    for kind, each in (("files", graph), ("folders", of_folders(graph))):
        for group in circles(each):
            print(f"circle of {kind}:", " ".join(group))
            wrong = True
    for folder in WORDED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line in fragments(path):
                print("begin with a noun or a verb:", line)
                wrong = True
    budgets = tomllib.loads((ROOT / "scripts" / "budgets.toml").read_text(encoding="utf-8"))
    total = 0
    for package, most in budgets["lines"].items():
        where = LIBRARY / package
        paths = [path for path in files if path.is_relative_to(where)] if where.is_dir() else [where]
        if package == "top files":
            paths = [path for path in files if path.parent == LIBRARY and path.name != "errors.py"]
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
        total += lines
        print(f"{package:20} {lines:7,} of {most:6,}{'   over' if lines > most else ''}")
    over = total > budgets["total"]
    print(f"{'sum':20} {total:7,} of {budgets['total']:6,}{'   over' if over else ''}")
    return int(wrong or over)


if __name__ == "__main__":
    raise SystemExit(main())
