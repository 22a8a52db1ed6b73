"""``make pictures``: everything in docs/pictures/, made from what the kit does now. Needs Chromium, but no network.

A session on a terminal, the graphs of langgraph.json as LangGraph draws them, one of them as its server gives it to
Studio, a fusion, a RAPTOR tree, the map of problems and parts, and the report. ``make pictures ONLY=crag`` makes those
whose names contain a text.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import mermaid
from drawings import fusion, part_map, raptor_tree, session
from langchain_core.runnables.graph import Graph
from langgraph.pregel.remote import RemoteGraph
from playwright.sync_api import Browser, Route, sync_playwright
from report_pictures import SCREENS, photograph
from studio import OFFLINE

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
MERMAID = "http://mermaid.invalid/"  # answered from memory
STUDIO = "adaptive_rag"  # has a graph within the graph

#: In the page of the browser: a diagram in Mermaid's language -> an SVG that needs neither its fonts nor its program.
_DRAW = """async text => {
  const {mermaid} = await import("./index.js");
  mermaid.initialize({startOnLoad: false, htmlLabels: false, fontFamily: "sans-serif", theme: "neutral",
                      flowchart: {htmlLabels: false, padding: 12}, deterministicIds: true});
  const {svg} = await mermaid.render("picture", text);
  const box = document.createElement("div");
  box.innerHTML = svg;
  const root = box.firstChild, [x, y, width, height] = root.getAttribute("viewBox").split(" ").map(Number);
  root.setAttribute("width", Math.ceil(width));
  root.setAttribute("height", Math.ceil(height));
  root.setAttribute("style", "background: white; max-width: 100%");
  return new XMLSerializer().serializeToString(root);
}"""


def main() -> int:
    """Make the pictures; the exit code is 1 where there is no browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="make those whose names contain this text")
    only = parser.parse_args().only
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("chromium is not installed; CHROMIUM=path names another browser of its kind", file=sys.stderr)
        return 1
    os.environ.pop("RAG_KIT_INDEX", None)  # the graphs are drawn, not run
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        for name, make in pictures(browser).items():
            if only in name:
                make(PICTURES / name)
                print(f"docs/pictures/{name}: {(PICTURES / name).stat().st_size / 1024:.0f} kB", flush=True)
        browser.close()
    return 0


def pictures(browser: Browser) -> dict[str, Callable[[Path], object]]:
    """File -> what writes it."""
    draw = partial(write_diagram, browser)
    diagrams = {f"graph-{name.replace('_', '-')}.svg": partial(own_drawing, name) for name in graph_names()}
    diagrams |= {"studio.svg": studio_drawing, "raptor.svg": raptor_tree}
    texts: dict[str, Callable[[], str]] = {"session.svg": session, "fusion.svg": fusion}
    texts |= {f"parts-{language}.svg": partial(part_map, language) for language in ("en", "zh")}
    return {
        **{
            name: lambda path, make=make: path.write_text(make(), encoding="utf-8")
            for name, make in texts.items()
        },
        **{name: lambda path, make=make: draw(make(), path) for name, make in diagrams.items()},
        **{name: partial(photograph, browser) for name in SCREENS},
    }


def write_diagram(browser: Browser, diagram: str, path: Path) -> None:
    """Draw a diagram in Mermaid's language."""
    page = browser.new_page()
    files = {"": b"<!doctype html>", **mermaid.modules()}
    types = {True: "text/javascript", False: "text/html"}

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(MERMAID)
        route.fulfill(body=files[name], content_type=types[name.endswith(".js")])

    page.route(f"{MERMAID}**", answer)
    page.goto(MERMAID)
    path.write_text(page.evaluate(_DRAW, diagram) + "\n", encoding="utf-8")
    page.close()


def graph_names() -> dict[str, str]:
    """The graphs that LangGraph's server serves -> ``file:attribute``, without the chat, which is one node."""
    graphs = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    return {name: entry["path"] for name, entry in graphs.items() if name != "chat"}


def own_drawing(name: str) -> str:
    """A graph, as LangGraph draws it."""
    file, _, attribute = graph_names()[name].partition(":")
    module = importlib.import_module(f"graphs.{Path(file).stem}")
    return plain(getattr(module, attribute).get_graph())


def studio_drawing() -> str:
    """A graph with the graphs in it, from the server that Studio asks."""
    with server() as url:
        return plain(RemoteGraph(STUDIO, url=url).get_graph(xray=True))


def plain(graph: Graph) -> str:
    """LangGraph's drawing in Mermaid's language, with labels that are no HTML."""
    text = graph.draw_mermaid().replace("&nbsp;", "").replace("<p>", "").replace("</p>", "")
    text = re.sub(r"<hr/>.*?</em></small>", "", text).replace("([", "(").replace("])", ")")
    return re.sub(r"-\. (.+?) \.->", lambda edge: f'-. "{edge[1].replace(">", "#gt;")}" .->', text)


@contextmanager
def server() -> Iterator[str]:
    """LangGraph's development server on this machine; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=ROOT, env={**os.environ, **OFFLINE}, stdout=log, stderr=log
        )
        try:
            for _ in range(240):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0 or process.poll() is not None:
                        break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
