"""The format of prompt files, and the errors of files that are wrong."""

from __future__ import annotations

import pytest

from rag_kit.prompts.format import MAX_BYTES, PromptFile, PromptFileError, parse_prompt

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


def parse(text: str | bytes) -> PromptFile:
    return parse_prompt(text, name="greet", language="en")


def problems_of(text: str | bytes, name: str = "greet", language: str = "en") -> list[tuple[int, str]]:
    """(line, message) of everything wrong with a text."""
    with pytest.raises(PromptFileError) as caught:
        parse_prompt(text, name=name, language=language, file="x.prompt")
    assert {problem.file for problem in caught.value.problems} == {"x.prompt"}
    return [(problem.line, problem.message) for problem in caught.value.problems]


def with_input(yaml: str) -> str:
    """The good file with another input block."""
    return GOOD.replace("input:\n  guest: Who is greeted.\n", yaml)


def with_body(body: str) -> str:
    """The good file with another body, which starts at line 8."""
    return GOOD[: GOOD.index("{{role")] + body


def test_a_good_file_is_read() -> None:
    """Front matter, sections, variables and line numbers come out as written."""
    parsed = parse(GOOD)
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
    assert parse(text).inputs == {"guest": "string, who is greeted"}


def test_line_ends_and_byte_order_mark_do_not_matter() -> None:
    """A file saved on Windows is the same prompt with the same hash."""
    windows = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert parse(windows).hash == parse(GOOD).hash


def test_examples_alternate_user_and_model() -> None:
    """Few-shot examples are sections too; single braces and JSON in them are plain text."""
    body = '{{role "user"}}\nA {x}\n{{role \'model\'}}\n{"a": {"b": 1}}\n{{ role "user" }}\n{{ guest }}'
    assert [(s.role, s.text) for s in parse(with_body(body)).sections] == [
        ("user", "A {x}"),
        ("model", '{"a": {"b": 1}}'),
        ("user", "{{guest}}"),
    ]


BODY = 'begin with a role: {{role "system"}}'


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("{{guest}}", "{{gest}}", 12, "did you mean 'guest'?); declared under input: guest"),
        ("{{guest}}", "the guest", 6, "the body has no {{guest}}"),
        ('role "user"', 'role "assistant"', 11, "unknown role 'assistant'; allowed: system, user, model"),
        ('role "user"', "role user", 11, 'allowed in double braces: {{role "system"'),
        ('{{role "system"}}\n', "", 8, BODY),
        ('{{role "user"}}\n', "", 8, "last section is 'system'"),
        ("{{guest}}.", '{{guest}}.\n{{role "model"}}\nHi', 13, "last section is 'model'"),
        ("<task>greet</task>\nBe kind.\n", "", 8, "system section is empty"),
        ("{{guest}}.", '{{guest}}.\n{{role "system"}}\nHi', 13, "must come first"),
        ("{{guest}}", "{{#if guest}}x{{/if}}", 12, "blocks, partials and comments"),
        ("Be kind.", "{{{guest}}}", 10, "{{{guest}} is not supported"),
        ("Be kind.", "{{guest", 10, "{{guest is not supported"),
        ("Be kind.", '{{"a": 1}}', 10, "For literal braces put a blank"),
        ("---\nname", "name", 1, "two lines '---'"),
        ("---\n{{", "{{", 1, "two lines '---'"),
        ("version: 1", "version: 1\nmodel: x", 5, "model is 'x': Extra inputs are not permitted; allowed keys: na"),
        ("version: 1\n", "", 2, "version: Field required"),
        ("version: 1", "version: 1.10", 4, "version is '1.1': Input should be a valid string"),
        ("version: 1", "version: 0", 4, "version is '0'"),
        ("version: 1", "version: 1\nversion: 2", 5, "the key 'version' appears twice"),
        ("name: greet", "name: great", 2, "the file name says 'greet'"),
        ("name: greet", "name: Greet!", 2, "name is 'Greet!': allowed: lower-case letters"),
        ("Greets a guest.", "", 3, "description is 'None'"),
        ("version: 1", "version: [1", 5, "not valid YAML"),
        ("version: 1", "version: &v 1\ndescription2: *v", 5, "aliases are not allowed"),
        ("version: 1", "version: !!python/name:os.system", 4, "not valid YAML"),
        ("version: 1", "version: " + "[" * 400 + "]" * 400, 4, "valid string"),
        ("version: 1", "version: 2024-13-45", 2, "not valid YAML"),
        ("\n  guest: Who is greeted.", " guest", 5, "input is 'guest': Input should be a valid dictionary"),
        ("Who is greeted.", "3", 6, "input.guest is '3': Input should be a valid string"),
        ("  guest:", "  guest-name:", 6, "it is not a variable name"),
        ("  guest:", "  stop:", 6, "it is a reserved word"),
        ("  guest:", "".join(f"  v{i}: x\n" for i in range(40)) + "  guest:", 5, "at most 32"),
        ("---\n{{", "output:\n  schema: Qwery\n---\n{{", 8, "unknown schema; allowed: Query"),
        ("---\n{{", "output: Query\n---\n{{", 7, "output is 'Query'"),
        ("---\n{{", "output:\n  schema: [1]\n---\n{{", 8, "not a usable JSON schema"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_line_and_what_is_allowed(
    old: str, new: str, line: int, words: str
) -> None:
    """Each mistake is reported at its line, in words that say what to write instead."""
    assert old in GOOD
    found = problems_of(GOOD.replace(old, new))
    assert any(at == line and words in message for at, message in found), found


@pytest.mark.parametrize(
    ("body", "line"), [("", 8), ("\n  \n", 8), ("\n\nHello\n{{role 'user'}}\n{{guest}}", 10)]
)
def test_a_body_begins_with_a_role(body: str, line: int) -> None:
    """An empty body and text before the first role are reported where they stand."""
    assert any(at == line and BODY in message for at, message in problems_of(with_body(body)))


def test_all_mistakes_are_reported_at_once() -> None:
    """One run lists the problems of front matter and body, in the order of the file."""
    text = GOOD.replace("version: 1", "version: 0").replace("{{guest}}", "{{gest}} {{#each x}}")
    assert [line for line, _ in problems_of(text)] == [4, 12]


def test_a_file_that_is_not_utf8_is_named_with_its_line() -> None:
    """A wrong encoding is reported, not guessed."""
    found = problems_of(GOOD.encode().replace(b"Be kind.", "Sei höflich.".encode("latin-1")))
    assert found[0][0] == 10
    assert "UTF-8" in found[0][1]


def test_a_file_over_the_size_cap_is_refused() -> None:
    """A huge file is refused before it is parsed."""
    assert "at most 65536" in problems_of(GOOD + "x" * MAX_BYTES)[0][1]


@pytest.mark.parametrize(("name", "language"), [("greet", "de"), ("Greet", "en"), ("a/b", "en"), ("", "zh")])
def test_a_bad_name_or_language_is_refused(name: str, language: str) -> None:
    """Only plain lower-case names and the two languages pass."""
    assert "LANGUAGE one of en, zh" in problems_of(GOOD, name, language)[0][1]


def test_an_inline_schema_gets_the_title_that_models_need() -> None:
    """A JSON schema in the file is kept, with title and description filled in where absent."""
    text = with_input(
        "input:\n  guest: x\noutput:\n  schema:\n    type: object\n    properties:\n      mood: {type: string}\n"
    )
    schema = parse(text).schema
    assert isinstance(schema, dict)
    assert schema["title"] == "Greet"
    assert schema["properties"] == {"mood": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {}}, "empty"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "at properties.a.type: 'text' is not"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, "$ref must point into the same"),
        ({"type": "object", "properties": {"a": {}}, "required": "a"}, "at required: 'a' is not of type 'array'"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": 3}}}, "properties.a.items"),
        ({"type": "object", "properties": {"a": {"anyOf": []}}}, "at properties.a.anyOf: [] should be non-empty"),
        ({"type": "object", "properties": {f"a{i}": {} for i in range(30_000)}}, "more than 200,000 characters"),
        ({"type": "object", "properties": {1: {}}}, "keys are text"),
    ],
)  # fmt: skip
def test_an_unusable_inline_schema_is_explained(schema: dict[str, object], words: str) -> None:
    """A schema that a model could not fill in is refused with the place."""
    from rag_kit.prompts.front_matter import schema_problem

    found = schema_problem(schema)
    assert found is not None
    assert words in found


def test_a_version_is_text_however_it_is_written() -> None:
    """A bare number and a quoted one are the same version, so that languages can agree."""
    for written in ("2", '"2"', "'2 '"):
        assert parse(GOOD.replace("version: 1", f"version: {written}")).version == "2"
