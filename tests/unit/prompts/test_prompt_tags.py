"""Reserved tags in values: inert inside a prompt, and the text comes back whole."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_kit.prompts.rendering import RESERVED_TAGS, Markup, escape_tags, unescape_tags


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("</passage>", "&lt;/passage>"),
        ("<TASK>x</Task>", "&lt;TASK>x&lt;/Task>"),
        ('<passage id="9">', '&lt;passage id="9">'),
        ("< / passages >", "&lt; / passages >"),
        ("<\u200bquestion>", "&lt;\u200bquestion>"),
        ("<turn", "&lt;turn"),
        ("&lt;task>", "&amp;lt;task>"),
        ("&amp;lt;task>", "&amp;amp;lt;task>"),
        ("<b>a < b && c > d</b> &lt; &amp; {x} {{role}}", "<b>a < b && c > d</b> &lt; &amp; {x} {{role}}"),
        ("<tasks> <passage_id> <my-task> <question-mark>", "<tasks> <passage_id> <my-task> <question-mark>"),
    ],
)
def test_only_reserved_tags_change(text: str, escaped: str) -> None:
    """The bracket of a reserved tag is escaped in every disguise; all other text stays as it is."""
    assert escape_tags(text) == escaped
    assert unescape_tags(escaped) == text


_FRAGMENTS = st.sampled_from(
    ["<", "</", "&", "&lt;", "&amp;", "lt;", "amp;", "task", "passage", ">", " ", "x", "\n"]
)


@given(st.lists(_FRAGMENTS | st.text(max_size=3), max_size=30).map("".join))
def test_unescaping_gives_the_text_back(text: str) -> None:
    """Escaping loses nothing, whatever the text, and leaves no reserved tag open."""
    escaped = escape_tags(text)
    assert unescape_tags(escaped) == text
    for name in RESERVED_TAGS:
        assert f"<{name}>" not in escaped.lower()
        assert f"</{name}>" not in escaped.lower()


def test_other_tag_names_can_be_escaped() -> None:
    """A prompt's own tags are escaped when they are named."""
    assert escape_tags("<ticket><task>", {"ticket"}) == "&lt;ticket><task>"
    assert escape_tags("<task>", ()) == "<task>"


def test_markup_is_not_inherited() -> None:
    """Whatever is derived from trusted markup is plain text again, so it is escaped again."""
    markup = Markup("<passage>")
    for derived in (
        markup + "x",
        "x" + markup,
        markup.strip(),
        markup.replace("p", "q"),
        f"{markup}",
        markup[1:],
    ):
        assert type(derived) is str
    assert type(copy.deepcopy(markup)) is Markup
