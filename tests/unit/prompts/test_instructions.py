"""Instructions of a run's own in place of a prompt file's."""

from __future__ import annotations

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt


def test_the_text_is_literal_and_the_rest_stays() -> None:
    """Braces and role markers mean nothing; task, user message, schema and inputs are the file's."""
    prompt = load_prompt("condense", language="zh")
    own = prompt.with_instructions('Say {x} {{role "user"}}.')
    system, user = own.format_messages(question="q", history="h")
    assert system.content == '<task>condense</task>\nSay {x} {{role "user"}}.'
    assert user.content == prompt.format_messages(question="q", history="h")[1].content
    assert own.output_schema is prompt.output_schema
    assert own.metadata["hash"] != prompt.metadata["hash"]
    assert prompt.format_messages(question="q", history="h")[0].content != system.content


def test_empty_instructions_are_refused() -> None:
    """There is nothing to put in their place."""
    with pytest.raises(InvalidInputError, match=r"condense\.en"):
        load_prompt("condense").with_instructions(" ")
