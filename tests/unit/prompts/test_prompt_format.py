"""What a prompt file may hold, and what is said about one that is wrong."""

from __future__ import annotations

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import MAX_BYTES, inspect_prompt, parse_prompt

GOOD = """---
name: greet
description: Greets a guest.
version: 1
input:
  guest: Who is greeted.
---
{{role "system"}}
<task>greet</task>
Be kind.
{{role "user"}}
Greet {{guest}}.
"""


def problems_of(text: str | bytes, name: str = "greet", language: str = "en") -> list[tuple[int, str]]:
    """(line, message) of everything wrong with a text."""
    data = text if isinstance(text, bytes) else text.encode()
    parsed, problems = inspect_prompt(data, name, language, "x.prompt")
    assert (parsed is None) == bool(problems)
    assert all(problem.file == "x.prompt" for problem in problems)
    return [(problem.line, problem.message) for problem in problems]


def with_input(yaml: str) -> str:
    """The good file with another input block."""
    return GOOD.replace("input:\n  guest: Who is greeted.\n", yaml)


def with_body(body: str) -> str:
    """The good file with another body, which starts at line 8."""
    return GOOD[: GOOD.index("{{role")] + body


def test_a_good_file_is_read() -> None:
    """Front matter, sections, variables and line numbers come out as written."""
    parsed = parse_prompt(GOOD, name="greet", language="en")
    assert (parsed.name, parsed.language, parsed.version) == ("greet", "en", "1")
    assert parsed.inputs == {"guest": "Who is greeted."}
    assert [(s.role, s.text, s.line) for s in parsed.sections] == [
        ("system", "<task>greet</task>\nBe kind.", 8),
        ("user", "Greet {{guest}}.", 11),
    ]
    assert parsed.schema is None
    assert parsed.hash.startswith("sha256:")


def test_inputs_in_dotprompt_form_are_the_same() -> None:
    """``input.schema`` of dotprompt declares the same variables as the short form."""
    text = with_input("input:\n  schema:\n    guest: string, who is greeted\n")
    assert parse_prompt(text, name="greet", language="en").inputs == {"guest": "string, who is greeted"}


def test_line_ends_and_byte_order_mark_do_not_matter() -> None:
    """A file saved on Windows is the same prompt with the same hash."""
    windows = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    parsed, _ = inspect_prompt(windows, "greet", "en", "x.prompt")
    assert parsed is not None
    assert parsed.hash == parse_prompt(GOOD, name="greet", language="en").hash


def test_examples_alternate_user_and_model() -> None:
    """Few-shot examples are sections too; single braces and JSON in them are plain text."""
    body = '{{role "user"}}\nA {x}\n{{role \'model\'}}\n{"a": {"b": 1}}\n{{ role "user" }}\n{{ guest }}'
    parsed = parse_prompt(with_body(body), name="greet", language="en")
    assert [(s.role, s.text) for s in parsed.sections] == [
        ("user", "A {x}"),
        ("model", '{"a": {"b": 1}}'),
        ("user", "{{guest}}"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        # the body
        (GOOD.replace("{{guest}}", "{{gest}}"), 12, ["{{gest}}", "did you mean {{guest}}?", "declared"]),
        (GOOD.replace("{{guest}}", "the guest"), 6, ["'guest'", "declared", "no {{guest}}"]),
        (GOOD.replace('role "user"', 'role "wizard"'), 11, ["unknown role 'wizard'", "system, user, model"]),
        (GOOD.replace('role "user"', 'role "assistant"'), 11, ["'assistant'", 'write {{role "model"}}']),
        (
            GOOD.replace('role "user"', "role user"),
            11,
            ["{{role user}}", 'allowed in double braces: {{role "system"'],
        ),
        (GOOD.replace('role "user"', "role"), 11, ["{{role}}", "not supported"]),
        (with_body(""), 8, ["the body is missing", '{{role "user"}}']),
        (with_body("\n  \n"), 8, ["the body is missing"]),
        (with_body("Greet {{guest}}."), 8, ["text before the first role", '{{role "system"}}']),
        (with_body('\n\nHello\n{{role "user"}}\n{{guest}}'), 10, ["text before the first role"]),
        (with_body('{{role "system"}}\nHi {{guest}}'), 8, ["last section is 'system'", "'user'"]),
        (with_body('{{role "user"}}\n{{guest}}\n{{role "model"}}\nHi'), 10, ["last section is 'model'"]),
        (with_body('{{role "system"}}\n{{role "user"}}\n{{guest}}'), 8, ["system section is empty"]),
        (
            with_body('{{role "user"}}\n{{guest}}\n{{role "system"}}\nx\n{{role "user"}}\ny'),
            10,
            ["must come first"],
        ),
        (
            GOOD.replace("{{guest}}", "{{#if guest}}x{{/if}}"),
            12,
            ["{{#if guest}}", "blocks, partials and comments"],
        ),
        (GOOD.replace("Be kind.", "{{! a note }}"), 10, ["{{! a note }}", "not supported"]),
        (GOOD.replace("Be kind.", "{{> part}}"), 10, ["{{> part}}", "not supported"]),
        (GOOD.replace("Be kind.", "{{{guest}}}"), 10, ["three braces", "{{variable}}"]),
        (GOOD.replace("Be kind.", "{{guest.name}}"), 10, ["{{guest.name}}", "allowed"]),
        (GOOD.replace("Be kind.", '{{media url="x"}}'), 10, ["media", "not supported"]),
        (GOOD.replace("Be kind.", "{{guest"), 10, ["not closed on its line"]),
        (GOOD.replace("Be kind.", '{{"a": 1}}'), 10, ["For literal braces put a blank"]),
        # the front matter
        (GOOD[4:], 1, ["first line must be '---'"]),
        (GOOD.replace("---\n{{", "{{"), 1, ["not closed", "'---'"]),
        (
            "---\n---\n" + GOOD[GOOD.index("{{role") :],
            2,
            ["allowed keys: name, description, version, input, output"],
        ),
        (
            GOOD.replace("version: 1", "version: 1\nmodel: x"),
            5,
            ["unknown key 'model'", "allowed keys: name"],
        ),
        (GOOD.replace("version: 1\n", ""), 2, ["'version' is missing", "required"]),
        (GOOD.replace("version: 1", "version: 1.10"), 4, ["version is 1.1", "text in quotes"]),
        (GOOD.replace("version: 1", "version: 0"), 4, ["version is 0", "whole number from 1"]),
        (GOOD.replace("version: 1", "version: true"), 4, ["version is True"]),
        (GOOD.replace("name: greet", "name: great"), 2, ["'great'", "the file name says 'greet'"]),
        (GOOD.replace("name: greet", "name: Greet!"), 2, ["name is 'Greet!'", "lower-case letters"]),
        (GOOD.replace("name: greet", "name: on"), 2, ["name is True"]),
        (GOOD.replace("Greets a guest.", ""), 3, ["description must be a line of text"]),
        (GOOD.replace("version: 1", "version: [1"), 5, ["not valid YAML"]),
        (GOOD.replace("version: 1", "version: 1\nversion: 2"), 5, ["'version' appears twice"]),
        (GOOD.replace("version: 1", "version: &v 1\ndescription2: *v"), 5, ["aliases (*) are not allowed"]),
        (GOOD.replace("version: 1", "version: !!python/name:os.system"), 4, ["not valid YAML", "python"]),
        (GOOD.replace("version: 1", "version: " + "[" * 200 + "]" * 200), 4, ["nested deeper than 16"]),
        (GOOD.replace("version: 1", "version: \x07"), 2, ["not valid YAML"]),
        (GOOD.replace("version: 1", "version: 2024-13-45"), 2, ["not valid YAML"]),
        (with_input("input: guest\n"), 5, ["'variable: what it holds'"]),
        (with_input("input:\n  guest: 3\n"), 6, ["'guest' must have a text"]),
        (with_input("input:\n  guest-name: x\n"), 6, ["'guest-name' is not a variable name"]),
        (with_input("input:\n  stop: x\n  guest: y\n"), 6, ["'stop' is a reserved word"]),
        (with_input("input:\n  schema:\n    guest: x\n  default: y\n"), 8, ["unknown key 'default'"]),
        (with_input("input:\n" + "".join(f"  v{i}: x\n" for i in range(40))), 5, ["40 inputs", "at most 32"]),
        (
            with_input("input:\n  guest: x\noutput:\n  schema: Qwery\n"),
            8,
            ["'Qwery'", "Query", "inline JSON schema"],
        ),
        (with_input("input:\n  guest: x\noutput: Query\n"), 7, ["output must hold one key, 'schema'"]),
        (with_input("input:\n  guest: x\noutput:\n  schema: [1]\n"), 8, ["not a usable JSON schema", "list"]),
        (with_input("input:\n  guest: x\noutput:\n  schema:\n    a: string\n"), 8, ["'type: object'"]),
    ],
)
def test_a_wrong_file_is_named_with_line_and_what_is_allowed(text: str, line: int, words: list[str]) -> None:
    """Each mistake is reported at its line, in words that say what to write instead."""
    found = problems_of(text)
    assert any(at == line and all(word in message for word in words) for at, message in found), found


def test_all_mistakes_are_reported_at_once() -> None:
    """One run lists every problem, in the order of the file."""
    text = GOOD.replace("version: 1", "version: 0").replace("{{guest}}", "{{gest}} {{#each x}}")
    assert [line for line, _ in problems_of(text)] == [4, 6, 12, 12]


def test_a_file_that_is_not_utf8_is_named_with_its_line() -> None:
    """A wrong encoding is reported, not guessed."""
    found = problems_of(GOOD.encode().replace(b"Be kind.", "Sei höflich.".encode("latin-1")))
    assert found[0][0] == 10
    assert "UTF-8" in found[0][1]


def test_a_file_over_the_size_cap_is_refused() -> None:
    """A huge file is refused before it is parsed, and so is a huge front matter."""
    assert "at most 65536" in problems_of(GOOD + "x" * MAX_BYTES)[0][1]
    assert "front matter has" in problems_of(GOOD.replace("Greets", "G" * 20_000))[0][1]


@pytest.mark.parametrize(("name", "language"), [("greet", "de"), ("Greet", "en"), ("a/b", "en"), ("", "zh")])
def test_a_bad_name_or_language_is_refused(name: str, language: str) -> None:
    """Only plain lower-case names and the two languages pass."""
    assert "LANGUAGE one of en, zh" in problems_of(GOOD, name, language)[0][1]


def test_parse_prompt_raises_with_file_and_line() -> None:
    """The exception holds one ``file:line: message`` for each problem."""
    with pytest.raises(InvalidInputError, match=r"^my\.prompt:12: unknown variable \{\{gest\}\}"):
        parse_prompt(
            with_body('{{role "user"}}\n{{guest}}\n\n\n{{gest}}'),
            name="greet",
            language="en",
            file="my.prompt",
        )


def test_an_inline_schema_gets_the_title_that_models_need() -> None:
    """A JSON schema in the file is kept, with title and description filled in where absent."""
    text = with_input(
        "input:\n  guest: x\noutput:\n  schema:\n    type: object\n    properties:\n      mood: {type: string}\n"
    )
    schema = parse_prompt(text, name="greet", language="en").schema
    assert isinstance(schema, dict)
    assert schema["title"] == "Greet"
    assert schema["properties"] == {"mood": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {}}, "empty"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "at properties.a.type: 'text' is not"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, "$ref must point into the same"),
        (
            {"type": "object", "properties": {"a": {}}, "required": "a"},
            "at required: 'a' is not of type 'array'",
        ),
        ({"type": "object", "properties": {"a": {"type": "array", "items": 3}}}, "properties.a.items"),
        (
            {"type": "object", "properties": {"a": {"anyOf": []}}},
            "at properties.a.anyOf: [] should be non-empty",
        ),
        ({"type": "object", "properties": {f"a{i}": {} for i in range(3000)}}, "more than 20,000 characters"),
        ({"type": "object", "properties": {1: {}}}, "keys are text"),
    ],
)
def test_an_unusable_inline_schema_is_explained(schema: dict[str, object], words: str) -> None:
    """What a model could not be asked to fill in is refused with the place."""
    from rag_kit.prompts.json_schema import schema_problem

    found = schema_problem(schema)
    assert found is not None
    assert words in found


@pytest.mark.parametrize("written", ["2", '"2"', "'2 '"])
def test_a_version_is_text_however_it_is_written(written: str) -> None:
    """A bare number and a quoted one are the same version, so that languages can agree."""
    text = GOOD.replace("version: 1", f"version: {written}")
    assert parse_prompt(text, name="greet", language="en").version == "2"
