"""Hooks of ``make site`` (mkdocs.yml): what the site has beside the pages in ``docs/``.

The navigation follows the two index pages of the guide. Each package directly under ``rag_kit`` gets a page of its
public names. Files of the repository that a page links to are put into the site beside the pages.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
import mermaid
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
MERMAID = "assets/mermaid"
_LINK = re.compile(r"(?<=\]\()((?:\.\./)+)([^)#\s]+)")
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
_ENTRY = re.compile(r"^(?:## (.+)|[^\[\n]*\[(.+?)\]\((\w[\w-]*\.md)\).*)$", re.MULTILINE)


class Examples(griffe.Extension):
    """The section ``Example:`` of the library's docstrings is griffe's ``Examples:``, which is shown as code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rename the section of one object."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub("Examples:", obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Leave out a constructor that takes whatever the fields are: the docstring names them."""
        made = cls.members.get("__init__")
        if isinstance(made, griffe.Function) and "values" in made.parameters:
            cls.del_member("__init__")


def packages() -> list[str]:
    """The packages directly under ``rag_kit`` that have public names."""
    names = sorted(path.parent.name for path in (ROOT / "rag_kit").glob("*/__init__.py"))
    return [name for name in names if getattr(importlib.import_module(f"rag_kit.{name}"), "__all__", None)]


def api_page(name: str) -> str:
    """A page of a package's public names, for mkdocstrings."""
    package = importlib.import_module(f"rag_kit.{name}")
    parts = [
        f"# rag_kit.{name}",
        package.__doc__ or "",
        *(f"::: rag_kit.{name}.{part}" for part in package.__all__),
    ]
    return "\n\n".join(parts)


def guide(language: str) -> list[Any]:
    """The sections and pages of one language, as its index page has them."""
    folder = f"guide/{language}"
    pages: list[Any] = [f"{folder}/index.md"]
    here = pages
    for section, title, page in _ENTRY.findall(
        (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    ):
        if section:
            here = []
            pages.append({section: here})
        else:
            here.append({title.replace("`", ""): f"{folder}/{page}"})
    return pages


def on_config(config: MkDocsConfig) -> None:
    """Set the navigation."""
    decisions = sorted(f"decisions/{path.name}" for path in (ROOT / "docs" / "decisions").glob("*.md"))
    figures = ["benchmarks.md", "scale.md", "doc_samples.md"]
    others = sorted({path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md", *figures})
    config.nav = [
        {"rag_kit": "index.md"},
        {"Guide": guide("en")},
        {"指南": guide("zh")},
        {"API": [{f"rag_kit.{name}": f"api/{name}.md"} for name in packages()]},
        {"Figures": figures},
        {"Design": [*others, {"Decisions": decisions}]},
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the API, Mermaid, and the files outside ``docs/`` that pages link to."""
    for name, content in mermaid.modules().items():
        files.append(File.generated(config, f"{MERMAID}/{name}", content=content))
    for name in packages():
        files.append(File.generated(config, f"api/{name}.md", content=api_page(name)))
    for page in list(files.documentation_pages()):
        for up, target in _LINK.findall(page.content_string):
            outside = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.src_uri), up, target))
            if (
                not outside.startswith("docs/")
                and (ROOT / outside).is_file()
                and outside not in files.src_uris
            ):
                files.append(File.generated(config, outside, abs_src_path=str(ROOT / outside)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that leave ``docs/`` lead to where the site has the file; a guide page leads to its translation."""
    folder = posixpath.dirname(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, *link.groups()))
        return link[0] if target.startswith("docs/") else posixpath.relpath(target, folder or ".")

    markdown = _LINK.sub(inside, markdown).replace("```python no-run", "```python")
    for language, other, name in (("en", "zh", "中文"), ("zh", "en", "English")):
        twin = page.file.src_uri.replace(f"guide/{language}/", f"guide/{other}/")
        if twin != page.file.src_uri:
            title, _, text = markdown.partition("\n")
            return f"{title}\n\n[{name}]({posixpath.relpath(twin, folder)})\n{text}"
    return markdown


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Any) -> None:
    """The words around a Chinese page are Chinese."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("guide/zh/") else "en"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """A page with a diagram brings the program that draws it, which the theme would fetch from a network."""
    if 'class="mermaid"' not in output:
        return output
    path = posixpath.relpath(f"{MERMAID}/{mermaid.INDEX}", posixpath.dirname(page.file.src_uri) or ".")
    script = f'import {{mermaid}} from "./{path}"; window.mermaid = mermaid'
    return output.replace("</body>", f'<script type="module">{script}</script></body>')
