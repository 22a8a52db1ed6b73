"""The guide's index pages: each page can be reached, each link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


def links(page: Path) -> set[Path]:
    """The files that a page links to."""
    return {(page.parent / target).resolve() for target in _LINK.findall(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_linked_from_the_index(language: str) -> None:
    """A page that is added to the guide is added to the index of its language too."""
    index = GUIDE / language / "index.md"
    missing = set((GUIDE / language).glob("*.md")) - {index} - links(index)
    assert not missing, f"not in {index.relative_to(ROOT)}: {sorted(page.name for page in missing)}"


def test_both_languages_have_the_same_pages() -> None:
    """A page of one language is there in the other."""
    assert {p.name for p in (GUIDE / "en").glob("*.md")} == {p.name for p in (GUIDE / "zh").glob("*.md")}


def test_links_lead_somewhere() -> None:
    """No link of README, the guide or the pages of figures is broken."""
    figures = [ROOT / "docs" / name for name in ("benchmarks.md", "scale.md")]
    pages = [ROOT / "README.md", ROOT / "README.zh.md", *figures, *GUIDE.rglob("*.md")]
    broken = [f"{page.name} -> {target}" for page in pages for target in links(page) if not target.exists()]
    assert not broken


def _empty_headings(page: Path) -> list[str]:
    """Headings that nothing follows before the next one of their level or above, code blocks left out."""
    text = re.sub(
        r"^(```|~~~).*?^\1", "(code)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found = re.split(r"^(#{1,6}) (.+)$", text, flags=re.MULTILINE)
    parts = list(zip(found[1::3], found[2::3], found[3::3], strict=True))
    ends = [len(level) for level, _, _ in parts[1:]] + [0]
    return [
        f"{page.name}: {title}"
        for (level, title, body), after in zip(parts, ends, strict=True)
        if not re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL).strip() and after <= len(level)
    ]


def test_no_heading_stands_over_nothing(tmp_path: Path) -> None:
    """Each heading of the documentation has text or a lower heading below it; the check finds one that has not."""
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n## B\n\n<!-- c -->\n\n## C\n\nText.\n\n```\n# no heading\n```\n\n### D\n", "utf-8"
    )
    assert _empty_headings(page) == ["page.md: B", "page.md: D"]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert not [title for page in pages for title in _empty_headings(page)]


def test_the_readme_leads_to_both_indexes() -> None:
    """README links to the guide in both languages."""
    assert {GUIDE / "en" / "index.md", GUIDE / "zh" / "index.md"} <= links(ROOT / "README.md")
