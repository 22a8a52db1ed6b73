"""From plain data to one HTML file that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from rag_kit.evaluation.reporting.packing import pack

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_NO_SCRIPT = {
    "en": "This report draws its tables with JavaScript, which is switched off here.",
    "zh": "本报告用 JavaScript 绘制表格，而此处已停用 JavaScript。",
}
_SECTIONS = ("scores", "plots", "comparison", "diagnosis", "questions", "about")


def embedded_json(value: Any) -> str:
    r"""JSON that can stand in a ``<script>`` element whatever it holds: no ``<``, ``>`` or ``&`` is left in it.

    Example:
        >>> embedded_json({"text": "</script>"})
        '{"text":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def page(data: Mapping[str, Any], plots: Sequence[tuple[str, str]] = ()) -> str:
    """The whole file.

    Args:
        data: What :func:`rag_kit.evaluation.reporting.payload` gave.
        plots: Kind of a plot (its caption is the text ``plot_<kind>``) and its SVG, made safe by
            :func:`rag_kit.evaluation.reporting.svg.safe_svg`.
    """
    texts = _texts()
    language = str(data["language"])
    words = texts[language]
    style, script = assets("css"), assets("js")
    sections = [name for name in _SECTIONS if name != "plots" or plots]
    values = {
        "lang": "zh-Hans" if language == "zh" else "en",
        "policy": html.escape(policy(style, script)),
        "title": html.escape(data["title"] or words["title"]),
        "style": style,
        "script": script,
        "noscript": html.escape(_NO_SCRIPT[language]),
        "contents": "\n".join(
            f'<li><a href="#{name}" data-text="{name}">{html.escape(words[name])}</a></li>'
            for name in sections
        ),
        "plots": _plots(plots, words),
        "texts": embedded_json(texts),
        "data": embedded_json(pack(data)),
    }
    # One pass: a value that holds the sign of a place is not read again.
    return _PLACE.sub(lambda match: values[match[1]], _asset("page.html"))


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style sheet, this script, no address at all, no markup from texts."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def assets(kind: str) -> str:
    """All files of a kind (``"css"`` or ``"js"``) in the order of their names; scripts share one scope.

    Raises:
        ValueError: If a file holds what would end its element.
    """
    folder = files(__package__) / "assets"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(f".{kind}"))
    text = "\n".join(_asset(name) for name in names)
    if kind == "js":
        text = '"use strict";\n{\n' + text + "\n}\n"
    if re.search(r"</(?:script|style)|<!--", text, re.IGNORECASE):
        raise ValueError(f"a .{kind} file holds the end of its own element")
    return f"\n{text}"


def _plots(plots: Sequence[tuple[str, str]], words: Mapping[str, str]) -> str:
    if not plots:
        return ""
    figures = "\n".join(
        f'<figure class="figure figure-{kind}"><figcaption id="plot-{kind}" data-text="plot_{kind}">'
        f"{html.escape(words[f'plot_{kind}'])}</figcaption>"
        f'<div class="drawing" tabindex="0" role="group" aria-labelledby="plot-{kind}">{svg}</div></figure>'
        for kind, svg in plots
    )
    return (
        '<section id="plots" aria-labelledby="plots-title">\n<h2 id="plots-title" data-text="plots"></h2>'
        f'<p class="lead" data-text="plots_lead"></p>\n<div class="plots">\n{figures}\n</div>\n</section>'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {language: json.loads(_asset(f"texts.{language}.json")) for language in ("en", "zh")}


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")
