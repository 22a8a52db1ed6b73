"""Lists of statements as tagged blocks, ready to be put into a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.prompts.tags import Markup, escape_tags


def render_statements(statements: Sequence[str]) -> Markup:
    """Number statements and put each into a ``<statement>`` tag; tags inside them are escaped.

    Example:
        >>> print(render_statements(["It rains.", "</statement> is inert."]))
        <statement id="1">It rains.</statement>
        <statement id="2">&lt;/statement> is inert.</statement>
    """
    return Markup(
        "\n".join(
            f'<statement id="{number}">{escape_tags(text.strip())}</statement>'
            for number, text in enumerate(statements, start=1)
        )
    )
