"""The documentation site as a reader uses it: built without a network, its pages, diagrams and search."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "http://127.0.0.1:9"  # where a build that asks the network gets no reply
EMPTY_SEARCH = {"config": {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}}, "docs": []}
RESULTS = ".md-search-result__list > li > a"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does, with every proxy leading nowhere."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra docs)")
    folder = tmp_path_factory.mktemp("site")
    proxies = {f"{kind}_proxy": NOWHERE for kind in ("http", "https", "all", "HTTP", "HTTPS", "ALL")}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, **proxies, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site and return its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page; at the end it asked for nothing elsewhere, missed no file, and no script of it failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address)
    opened, wrong = context.new_page(), []
    opened.on(
        "request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or wrong.append(asked.url)
    )
    opened.on("response", lambda reply: reply.status < 400 or wrong.append(f"{reply.status} {reply.url}"))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    assert wrong == []


def test_no_page_asks_another_host_or_misses_a_file(site: Path, page: Any) -> None:
    """Every built page loads with all it needs from the site itself, and its blocks of code are such."""
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 100
    # a page sets up its search at once, which takes longer than all the rest of it
    page.route("**/search_index.json", lambda route: route.fulfill(json=EMPTY_SEARCH))
    for name in pages:
        page.goto(f"/{name}")
        assert "```" not in page.text_content("article"), f"{name}: a block of code is not shown as one"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_fits_and_shows_what_it_names(page: Any, width: int, scheme: str) -> None:
    """On a phone and a wide window, light and dark: no sideways scrolling, and every picture is there."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto("/index.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.eval_on_selector_all("article img", "all => all.map(one => one.naturalWidth)")
    assert len(sizes) == 4 and all(sizes)
    assert len(page.query_selector_all("article table tbody tr")) >= 16


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_diagram_is_drawn(page: Any, language: str) -> None:
    """Mermaid, which the site brings, draws the decisions on a page of a problem."""
    page.goto(f"/guide/{language}/problem-not-found.html")
    page.wait_for_function("document.querySelector('div.mermaid')?.getBoundingClientRect().height > 200")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("reranking", "guide/en/reranking.html"),
        ("混合检索", "guide/zh/retrieval.html"),
        ("提示词", "guide/zh/prompts.html"),
        ("TrigramRetriever", "api/retrieval.html"),
    ],
)
def test_search_finds_pages_of_both_languages(page: Any, query: str, found: str) -> None:
    """The search box finds the page on a subject, in the language of the query."""
    page.goto("/guide/zh/index.html")
    page.keyboard.press("/")
    page.fill("input[name=query]", query)
    page.keyboard.press("End")  # the site looks at the query when a key is let go, which `fill` does not do
    page.wait_for_selector(RESULTS)
    addresses = page.eval_on_selector_all(RESULTS, "links => links.map(link => link.href)")
    assert any(found in address for address in addresses[:5]), addresses[:5]


def test_the_words_around_a_page_are_in_its_language(page: Any) -> None:
    """A Chinese page has a Chinese frame and leads to the English one, and back."""
    page.goto("/guide/zh/crag.html")
    assert (
        page.get_attribute("html", "lang") == "zh"
        and page.get_attribute("input[name=query]", "placeholder") == "搜索"
    )
    page.get_by_role("link", name="English").click()
    assert page.url.endswith("/guide/en/crag.html") and page.get_attribute("html", "lang") == "en"
    page.get_by_role("link", name="中文").click()
    assert page.url.endswith("/guide/zh/crag.html")


@pytest.mark.parametrize("package", ["retrieval", "graphs", "evaluation", "indexing", "models"])
def test_a_page_of_the_api_has_every_public_name(page: Any, package: str) -> None:
    """Each name of a package's `__all__` has a heading with its docstring."""
    page.goto(f"/api/{package}.html")
    headings = set(page.eval_on_selector_all("h2[id]", "all => all.map(one => one.id)"))
    names = importlib.import_module(f"rag_kit.{package}").__all__
    assert {f"rag_kit.{package}.{name}" for name in names} <= headings


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    """A link to a page or a heading that is not there fails the build, and is named."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra docs)")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[page](none.md) [heading](#none)\n", encoding="utf-8")
    config = (
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("  - scripts/site_hooks.py\n", "  []\n")
    )
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0 and "none.md" in done.stderr and "#none" in done.stderr
