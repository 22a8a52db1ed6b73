"""From plain data to one HTML file that asks the network for nothing, and the texts of it in English and Chinese."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from rag_kit.evaluation.wording import say, texts

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}  # of JSON in a script element
#: Parts of the page in their order, and whether a sentence stands below the heading.
_SECTIONS = {
    "answer": False, "scores": True, "plots": True, "comparison": True, "diagnosis": True, "questions": True,
    "about": False,
}  # fmt: skip


def page(data: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """Make the HTML file of a report from its payload and its plots (kind -> SVG)."""
    language = data["language"]
    style, script = assets("css"), assets("js")
    optional = {"plots": plots, "comparison": data["comparison"], "diagnosis": data["diagnosis"]}
    sections = [name for name in _SECTIONS if optional.get(name, True)]
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    values = {
        "lang": "zh-Hans" if language == "zh" else "en",
        "policy": html.escape(policy(style, script)),
        "title": html.escape(data["title"] or say("title", language)),
        "style": style,
        "script": script,
        "noscript": say("noscript", language),
        "contents": "\n".join(
            f'<li><a href="#{name}" data-text="{name}">{say(name, language)}</a></li>' for name in sections
        ),
        "sections": "\n".join(_section_html(name, plots, language) for name in sections),
        "texts": json.dumps(texts(), ensure_ascii=False).translate(_ESCAPES),
        # a tenth of the size of the JSON, and without characters of markup
        "data": base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode(),
    }
    # One pass: a value that looks like a placeholder is not filled in again.
    return _PLACEHOLDER.sub(lambda match: values[match[1]], _read_asset("page.html"))


def policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows only this style sheet and this script, and no network."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def assets(kind: str) -> str:
    """Join all files of a kind (``"css"`` or ``"js"``) in the order of their names; scripts share one scope."""
    folder = files(__package__) / "assets"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(f".{kind}"))
    text = "\n".join(map(_read_asset, names))
    return f'\n"use strict";\n(async () => {{\n{text}\n}})();\n' if kind == "js" else f"\n{text}"


def _read_asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _section_html(name: str, plots: Mapping[str, str], language: str) -> str:
    """Make a section of the page; the script fills it later, only plots are in it from the start."""
    lead = f'<p class="lead" data-text="{name}_lead"></p>' if _SECTIONS[name] else ""
    figures = [_figure_html(kind, svg, language) for kind, svg in plots.items() if name == "plots"]
    return (
        f'<section id="{name}" aria-labelledby="{name}-title" tabindex="-1"><h2 id="{name}-title" '
        f'data-text="{name}"></h2>{lead}<div id="{name}-body">{"".join(figures)}</div></section>'
    )


def _figure_html(kind: str, svg: str, language: str) -> str:
    name = f"plot-{kind}"
    drawing = svg.replace("<svg ", f'<svg aria-labelledby="{name}" ', 1)
    caption = f'<figcaption id="{name}" data-text="plot_{kind}">{say(f"plot_{kind}", language)}</figcaption>'
    return f'<figure class="figure">{caption}{drawing}</figure>'
