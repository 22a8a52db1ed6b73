"""The pictures of README, guide and notebooks: small, self-contained, described, and of the graphs as they are."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
GRAPHS = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
DRAWN = [name for name in GRAPHS if name != "chat"]  # one node, around the adaptive graph
_IMAGE = re.compile(r"!\[(.*?)\]\(([^)\s]+)\)")


def images() -> list[tuple[Path, str, Path]]:
    """Page, description and file of each image; of a notebook in its cells of text alone."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if page.suffix == ".ipynb":
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
            text = "\n".join("".join(cell["source"]) for cell in cells)
        found += [(page, alt, (page.parent / target).resolve()) for alt, target in _IMAGE.findall(text)]
    return found


def words(svg: str) -> str:
    """The text of a picture, without spaces."""
    return re.sub(r"\s", "", "".join(ElementTree.fromstring(svg).itertext()))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small_needs_nothing_else_and_is_placed(picture: Path) -> None:
    """Under 150 kB; an SVG is XML without script, HTML or address; a page or a notebook has it."""
    assert picture.stat().st_size < 150_000
    assert picture in {target for _, _, target in images()} | {
        ROOT / "docs" / "pictures" / "report-phone.png"
    }
    if picture.suffix == ".svg":
        text = picture.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'\s)]+", text))
        assert addresses <= {
            "http://www.w3.org/2000/svg",
            "https://www.textualize.io",
            "http://www.w3.org/1999/xlink",
        }
        assert {element.tag.partition("}")[2] for element in ElementTree.fromstring(text).iter()}.isdisjoint(
            {"script", "foreignObject", "image"}
        )


def test_every_image_is_there_and_says_what_it_shows() -> None:
    """An image has a file, and an alternative text for those who do not see it, in the language of the page."""
    for page, alt, target in images():
        chinese = "zh" in page.parts or page.name.endswith(".zh.md")
        assert target.is_file(), f"{page.name}: {target.name}"
        assert len(alt) >= (15 if chinese else 30), f"{page.name}: {target.name}: {alt!r}"
        assert bool(re.search("[一-鿿]", alt)) == chinese, f"{page.name}: {alt!r}"


@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_of_a_graph_has_its_nodes_and_edges(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that was changed needs `make pictures`."""
    monkeypatch.delenv("RAG_KIT_INDEX", raising=False)
    monkeypatch.syspath_prepend(str(ROOT))
    file, _, attribute = GRAPHS[name]["path"].partition(":")
    drawn = getattr(import_module(f"graphs.{Path(file).stem}"), attribute).get_graph()
    text = words(
        (ROOT / "docs" / "pictures" / f"graph-{name.replace('_', '-')}.svg").read_text(encoding="utf-8")
    )
    labels = [*drawn.nodes, *(str(edge.data) for edge in drawn.edges if edge.data)]
    assert not [label for label in labels if re.sub(r"\s", "", label) not in text]


def test_the_picture_of_studio_shows_the_graph_within_the_graph() -> None:
    """It was drawn from the server's graph, in which CRAG is unfolded."""
    text = words((ROOT / "docs" / "pictures" / "studio.svg").read_text(encoding="utf-8"))
    assert [
        name for name in ("classify", "next_hop", "single", "grade", "select_external") if name not in text
    ] == []
