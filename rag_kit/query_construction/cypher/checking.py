"""Check a Cypher statement: only clauses that read the graph, known functions, bounded paths.

Ladybug's read-only mode stops writes alone: ``LOAD FROM``, ``COPY TO``, ``CALL`` and extensions still run in it. So a
statement is split into tokens and written anew: a word outside the list of clauses becomes a name in backticks, which
no parser takes for a keyword, and each text is quoted anew. Where two lexers could read a statement differently, as
with comments, it is refused.
"""

from __future__ import annotations

import re

from rag_kit.errors import StatementError
from rag_kit.query_construction.statements.result import MAX_STATEMENT, RefusalError

MAX_HOPS = 10

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
  | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")
  | (?P<name>`[^`]+`)
  | (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark><>|<=|>=|=~|\.\.(?!\.)|\.(?![0-9.])|/(?![/*])|[()\[\]{},:|=<>+\-*%^])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_TO_ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t", "\r": r"\r"})
_PATH = re.compile(r"-\s*\[[^\[\]]*?\*([^\]{(]*)")
_BOUND = re.compile(r"\s*(?:(?:ALL\s+)?SHORTEST|TRAIL|ACYCLIC)?\s*(?:[0-9]+\s*\.\.\s*|\.\.\s*)?([0-9]+)\s*")


def checked_statement(statement: str) -> str:
    """The statement with names in backticks and texts in single quotes, if it is one query that only reads.

    Raises:
        StatementError: It is something else; the message says what.

    Example:
        >>> checked_statement("match (a:Person) where a.name = \\"Ada\\" return a.born AS order;")
        "MATCH (`a`:`Person`) WHERE `a`.`name` = 'Ada' RETURN `a`.`born` AS `order`"
    """
    try:
        return _rewritten(statement)
    except RefusalError as refusal:
        text = f"{refusal} is not allowed. Write one query of MATCH, WHERE, WITH, UNWIND and RETURN, without comments."
        raise StatementError(text, statement, refused=True) from None


def _rewritten(statement: str) -> str:
    """The statement put together again from its tokens; raises `RefusalError` at the first that is not allowed."""
    text = statement.strip().removesuffix(";").rstrip()
    if len(text) > MAX_STATEMENT or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise RefusalError(f"A statement of {len(text)} characters, or with a NUL or half a character,")
    tokens = _tokens(text)
    parts: list[str] = []
    open_brackets: list[str] = []
    for place, (kind, token, space) in enumerate(tokens):
        before = tokens[place - 1][1].upper() if place else ""
        after = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        if kind in ("word", "name"):
            label = before == ":" and open_brackets[-1:] != ["{"]
            named = kind == "name" or before in (".", "AS") or label
            token = _word(token, after, named=named)
        elif kind == "text":
            token = _quoted(token)
        elif token in ("(", "[", "{"):
            open_brackets.append(token)
        elif token in (")", "]", "}") and open_brackets:
            open_brackets.pop()
        parts.append(f" {token}" if space else token)
    if not parts or parts[0] not in _FIRST:
        raise RefusalError("A statement that does not begin with MATCH, UNWIND, WITH or RETURN")
    return "".join(parts)


def _tokens(text: str) -> list[tuple[str, str, bool]]:
    """Kind and text of each token, and whether white space stands before it."""
    found: list[tuple[str, str, bool]] = []
    place, space = 0, False
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise RefusalError(f"{text[place : place + 20]!r}")
        kind, place = str(match.lastgroup), match.end()
        if kind == "space":
            space = True
            continue
        if found and not space and "mark" not in (kind, found[-1][0]):
            raise RefusalError(f"{found[-1][1] + match[0]!r} without a space")
        found.append((kind, match[0], space))
        space = False
    # names and texts may hold any character
    plain = " ".join("x" if kind in ("name", "text") else token for kind, token, _ in found)
    for path in _PATH.finditer(plain):
        bound = _BOUND.fullmatch(path[1].upper())
        if bound is None or int(bound[1]) > MAX_HOPS:
            raise RefusalError(
                f"A path of variable length without a bound of at most {MAX_HOPS}, as in [:KNOWS*1..3],"
            )
    return found


def _word(token: str, after: str, *, named: bool) -> str:
    """A keyword in capitals, a function as it is, any other word as a name in backticks."""
    name = token.strip("`")
    # only ASCII: the upper case of the long s is S
    upper = name.upper() if name.isascii() else ""
    if not named:
        if upper in ("COUNT", "EXISTS") and after == "{":
            return upper
        if upper in _KEYWORDS:
            return upper
        if upper in _REFUSED:
            raise RefusalError(f"{upper} (a name goes in backticks)")
    if after == "(":
        if upper.lower() not in FUNCTIONS:
            raise RefusalError(f"The function {name} (allowed: {', '.join(sorted(FUNCTIONS))})")
        return name
    return f"`{name}`"


def _quoted(token: str) -> str:
    """A string literal written anew in single quotes; raises `RefusalError` for an escape that is not in `_ESCAPED`."""
    double = token[0] == '"'

    def unescaped(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0] if double else "'"
        if match[1] not in _ESCAPED:
            raise RefusalError(f"{match[0]!r} in a text")
        return _ESCAPED[match[1]]

    return f"'{_ESCAPE.sub(unescaped, token[1:-1]).translate(_TO_ESCAPES)}'"
