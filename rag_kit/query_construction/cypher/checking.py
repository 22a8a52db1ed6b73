"""Check a Cypher statement: only clauses that read the graph, and known functions.

Ladybug's read-only mode stops writes alone: ``LOAD FROM``, ``COPY TO``, ``CALL`` and extensions still run in it. So a
statement is split into tokens and written anew: a word outside the list of clauses becomes a name in backticks, never
a keyword. What two lexers could read differently, as comments and escapes, is refused; the process bounds the rest.
"""

from __future__ import annotations

import re

from rag_kit.query_construction.statements.result import MAX_STATEMENT, RefusalError, say_refusal

_ADVICE = (
    "Write one query of MATCH, WHERE, WITH, UNWIND and RETURN, without comments and backslashes; a text with an "
    "apostrophe goes in double quotes."
)
_FIRST = ("MATCH", "OPTIONAL", "RETURN", "UNWIND", "WITH")
_WORDS = """
    ACYCLIC ALL AND ANY AS ASC ASCENDING BY CASE CONTAINS DESC DESCENDING DISTINCT ELSE END ENDS FALSE IN IS LIMIT MATCH
    NONE NOT NULL OPTIONAL OR ORDER RETURN SHORTEST SINGLE SKIP STARTS THEN TRAIL TRUE UNION UNWIND WHEN WHERE WITH XOR
"""
_REFUSED_WORDS = """
    ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DELETE DETACH DROP EXPLAIN EXPORT FOREACH
    IMPORT INSTALL LOAD MERGE PROFILE REMOVE ROLLBACK SET UNINSTALL UPDATE USE YIELD
"""
_FUNCTION_NAMES = """
    abs avg ceil coalesce collect contains count date date_part datepart ends_with floor head id is_acyclic is_trail
    label labels last left length list_contains list_distinct list_len lower ltrim max min nodes properties rels right
    round rtrim size starts_with substring sum timestamp toLower toUpper trim upper year
"""
_KEYWORDS = frozenset(_WORDS.split())
_REFUSED = frozenset(_REFUSED_WORDS.split())
#: Functions that read no file or setting, and whose result is not larger than what they are given.
FUNCTIONS = frozenset(name.lower() for name in _FUNCTION_NAMES.split())

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<text>'[^'\\\0\ud800-\udfff]*'|"[^"\\\0\ud800-\udfff]*")
  | (?P<name>`[^`\0\ud800-\udfff]+`)
  | (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark><>|<=|>=|=~|\.\.(?!\.)|\.(?![0-9.])|/(?![/*])|[()\[\]{},:|=<>+\-*%^])
    """,
    re.VERBOSE,
)


def rewrite_statement(statement: str) -> str:
    """Quote the names of a statement, if it is one query that only reads; else raise `StatementError`.

    Example:
        >>> rewrite_statement("match (a:Person) where a.name = 'Ada' return a.born AS order;")
        "MATCH (`a`:`Person`) WHERE `a`.`name` = 'Ada' RETURN `a`.`born` AS `order`"
    """
    with say_refusal(statement, _ADVICE):
        return _write_anew(statement)


def _write_anew(statement: str) -> str:
    """Write the statement again from its tokens; raise `RefusalError` at the first that is not allowed."""
    text = statement.strip().removesuffix(";").rstrip()
    if len(text) > MAX_STATEMENT:
        raise RefusalError(f"A statement of {len(text)} characters")
    tokens = _tokens(text)
    parts: list[str] = []
    open_brackets: list[str] = []
    texts = [token for _, token, _ in tokens]
    for (kind, token, space), previous, after in zip(tokens, ["", *texts], [*texts[1:], ""], strict=False):
        before = previous.upper()
        if kind in ("word", "name"):
            # Person in "(a:Person)", but no value in "{name: true}"
            is_label = before == ":" and open_brackets[-1:] != ["{"]
            must_be_name = kind == "name" or before in (".", "AS") or is_label
            token = _render_word(token, after, must_be_name=must_be_name)
        elif token in ("(", "[", "{"):
            open_brackets.append(token)
        elif token in (")", "]", "}") and open_brackets:
            open_brackets.pop()
        parts.append(f" {token}" if space else token)
    if not parts or parts[0] not in _FIRST:
        raise RefusalError("A statement that does not begin with MATCH, UNWIND, WITH or RETURN")
    return "".join(parts)


def _tokens(text: str) -> list[tuple[str, str, bool]]:
    """Return kind and text of each token, and whether there is white space before it."""
    tokens: list[tuple[str, str, bool]] = []
    position, space = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise RefusalError(f"{text[position : position + 20]!r}")
        kind, position = str(match.lastgroup), match.end()
        if kind != "space":
            previous_kind, previous, _ = tokens[-1] if tokens else ("mark", "", True)
            if not space and "mark" not in (kind, previous_kind):
                raise RefusalError(f"{previous + match[0]!r} without a space")
            tokens.append((kind, match[0], space))
        space = kind == "space"
    return tokens


def _render_word(token: str, after: str, *, must_be_name: bool) -> str:
    """Write a keyword in capitals, a function as it is, any other word as a name in backticks."""
    name = token.strip("`")
    # only ASCII: 'ſ'.upper() is 'S', so another letter could pass as a keyword
    upper = name.upper() if name.isascii() else ""
    if not must_be_name:
        if upper in _KEYWORDS or (upper in ("COUNT", "EXISTS") and after == "{"):
            return upper
        if upper in _REFUSED:
            raise RefusalError(f"{upper} (a name goes in backticks)")
    if after == "(":
        if upper.lower() not in FUNCTIONS:
            raise RefusalError(f"The function {name} (allowed: {', '.join(sorted(FUNCTIONS))})")
        return name
    return f"`{name}`"
