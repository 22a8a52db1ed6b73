"""The guide's index pages: each page can be reached, each link leads somewhere, one word stands for one thing."""

from __future__ import annotations

import ast
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


# Names of LangChain, LangGraph, Ragas, LlamaIndex, FastEmbed, PostgreSQL, of the prompts' inputs and of formulas.
_FOREIGN = """
interrupt
abatch adapt add_conditional_edges add_edge add_node aio artifact ascore astream async auth bulk_update_state cat color
concatenate configurable_alternatives configurable_fields create_agent create_history_aware_retriever dblink debug
embed_model from_args get_state is_error langgraph_node langgraph_step list_supported_models ls_retriever_name ours_
pg_read_file prompt_hash prompt_language prompt_version s_rel s_sup s_use source_2 stream tag_place
update_prompts updates with_config with_fallbacks with_retry
"""
_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*([a-z_][a-z0-9_]*)(?:\(.*\))?")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's parameters."""
    every = function.args
    return {argument.arg for argument in (*every.posonlyargs, *every.args, *every.kwonlyargs)}


def names_of(tree: ast.Module, public: set[str]) -> set[str]:
    """Collect the names that a module defines for readers: functions, classes, fields, parameters, keys."""
    found: set[str] = set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        found |= {node.name} if isinstance(node, ast.ClassDef) else set()
        for member in members:
            if isinstance(member, functions):
                is_public = member.name in public or isinstance(node, ast.ClassDef)
                found |= {member.name} | (parameters(member) if is_public else set())
            elif isinstance(member, ast.Assign | ast.AnnAssign):
                targets = member.targets if isinstance(member, ast.Assign) else [member.target]
                found |= {
                    name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
                }
                if "__slots__" in ast.unparse(member):
                    member.value = None  # type: ignore[assignment]
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return found | {
        part for text in texts if isinstance(text, str) and " " not in text for part in text.split(".")
    }


def test_names_that_the_guide_mentions_exist() -> None:
    """A function, method, parameter or key in the running text is one of the kit's, or of the page's own code."""
    kit = ROOT / "rag_kit"
    public = {
        word for init in kit.glob("*/__init__.py") for word in re.findall(r"\w+", init.read_text("utf-8"))
    }
    known = {*_FOREIGN.split(), "md"} | {path.name.split(".")[0] for path in (ROOT / "prompts").iterdir()}
    for path in [*kit.rglob("*.py"), *(ROOT / "graphs").rglob("*.py")]:
        if path.name == "steps.py":  # the machinery below sync and async, no part of which is for readers
            continue
        known |= {path.stem, path.parent.name} | names_of(ast.parse(path.read_text("utf-8")), public)
    unknown = set()
    for page in GUIDE.rglob("*.md"):
        whole = page.read_text("utf-8")
        blocks = re.findall(r"```.*?```", whole, re.DOTALL)
        own = set(re.findall(r"\w+", " ".join(blocks)))
        for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", whole, flags=re.DOTALL)):
            mention = _NAME.fullmatch(span)
            if mention and mention[1] not in known | own:
                unknown.add(f"{page.relative_to(GUIDE)}: {span}")
    assert not unknown


CHINESE = [
    *sorted((ROOT / "docs" / "guide" / "zh").glob("*.md")),
    ROOT / "README.zh.md",
    *sorted((ROOT / "notebooks").glob("*.zh.ipynb")),
]
EVALUATION = ROOT / "rag_kit" / "evaluation"
CHINESE_TEXTS = [
    EVALUATION / "reporting" / "assets" / "texts.json",
    EVALUATION / "remedies.json",
    EVALUATION / "sentences.json",
]
CHINESE_PROMPTS = [
    *sorted((ROOT / "prompts").glob("*.zh.prompt")),
    *sorted((ROOT / "prompts" / "ragas").glob("*.zh.yaml")),
]
OTHER_WORDS = ("您", "流水线", "令牌", "重排序器", "嵌入模型", "附加项", "额外依赖", "可选依赖")


def test_one_word_for_one_thing() -> None:
    """None has another word for a pipeline, a token, a reranker, an embedding model, an extra or the reader."""
    for page in (*CHINESE, *CHINESE_TEXTS, *CHINESE_PROMPTS):
        text = page.read_text(encoding="utf-8")
        assert [word for word in OTHER_WORDS if word in text] == [], page.name
