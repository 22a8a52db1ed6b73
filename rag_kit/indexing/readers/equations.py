"""Equations in one line, ``(a+b)/2``, ``x^2``, ``√(x)``: those of Word (OMML) and of web pages (MathML)."""

from __future__ import annotations

import re
from typing import Any

OMML = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
# how an element is written, by the names of its parts; those of MathML have places in place of names
_SHAPES = {
    f"{OMML}f": "num/den",
    f"{OMML}sSup": "e^sup",
    f"{OMML}sSub": "e_sub",
    f"{OMML}sSubSup": "e_sub^sup",
    f"{OMML}rad": "√e",
    "mfrac": "a/b",
    "msup": "a^b",
    "mover": "a^b",
    "msub": "a_b",
    "munder": "a_b",
    "msubsup": "a_b^c",
    "munderover": "a_b^c",
    "msqrt": "√a",
    "mroot": "√a",
}


def equation_text(node: Any) -> str:
    """A node of an equation's XML as text; parts longer than one letter or a number are put in brackets."""
    if node.tag in ("annotation", "annotation-xml"):
        return ""
    if node.tag == f"{OMML}d":
        signs = (node.find(f"{OMML}dPr/{OMML}{name}") for name in ("begChr", "endChr"))
        first, last = (sign.get(f"{OMML}val", "") if sign is not None else None for sign in signs)
        inside = ", ".join(map(equation_text, node.findall(f"{OMML}e")))
        return f"{'(' if first is None else first}{inside}{')' if last is None else last}"
    shape = _SHAPES.get(node.tag)
    if shape is None:
        own = "" if len(node) else node.text or ""  # around parts there is only white space
        return (own if node.tag == f"{OMML}t" else own.strip()) + "".join(map(equation_text, node))
    texts = list(map(equation_text, node))
    if node.tag == "msqrt":  # its parts are one
        texts = ["".join(texts)]
    names = [child.tag.removeprefix(OMML) for child in node] if node.tag.startswith(OMML) else "abc"
    parts = dict(zip(names, texts, strict=False))
    # put each part in place of its name in the shape, such as "num/den"
    return re.sub(r"(\W?)([a-z]+)", lambda match: _argument_text(match[1], parts.get(match[2], "")), shape)


def _argument_text(sign: str, text: str) -> str:
    """A part of an equation behind its sign, in brackets if it is more than a character or a number."""
    if not text:
        return ""
    return sign + (text if len(text) == 1 or text.isdigit() else f"({text})")
