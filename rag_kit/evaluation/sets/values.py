"""One cell of a file, a table or a data set as a field of an example; every fault is named by its place."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError

_YES = frozenset({"true", "yes", "y", "1", "1.0", "是", "有"})
_NO = frozenset({"false", "no", "n", "0", "0.0", "否", "无", "没有"})
_MAX_LITERAL = 1_000_000
_ROLES = {"user": "question", "human": "question", "assistant": "answer", "ai": "answer"}


def plain_cell(value: Any) -> Any:
    """A cell as plain JSON, ``None`` where a table has a gap (NaN, NaT, blank text)."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float):
        return value if value == value and value not in (float("inf"), float("-inf")) else None
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    return to_plain(value)


def parsed(value: Any, where: str, field: str) -> Any:
    """A list or an object that a text cell spells out, as JSON or as Python prints it; other values as they are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    text = value.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    closed = text.endswith("]" if text[0] == "[" else "}")
    quoted = text[1:].lstrip()[:1] in {"'", '"', "]", "}", "(", "["}
    if not (closed and quoted and len(text) <= _MAX_LITERAL):
        return value  # a text that merely begins with a bracket, such as "[1] says so"
    try:
        return to_plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InvalidInputError(
            f"{where}: {field} is {text!r:.80}, which is neither a JSON list nor a Python one ({error}); "
            'write ["a", "b"]'
        ) from error


def texts(value: Any, where: str, field: str) -> list[str]:
    """A list of texts; one text is a list of one, numbers become text, SQuAD's ``{"text": [...]}`` is read."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        value = value["text"]
    items = value if isinstance(value, list) else [value]
    found = []
    for item in items:
        if isinstance(item, Mapping) and isinstance(item.get("text"), str):
            item = item["text"]
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            item = str(item)
        if not isinstance(item, str):
            raise InvalidInputError(f"{where}: {field} is {value!r:.120}; give a text or a list of texts")
        found.append(item)
    return list(dict.fromkeys(found))


def one_text(value: Any, where: str, field: str) -> str:
    """A text; a list of one text is that text, a number becomes text."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInputError(f"{where}: {field} is {value!r:.120}; give a text")
    return value


def identifier(value: Any, where: str) -> str:
    """An id: a text or a whole number (``3.0`` of a table with gaps too)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInputError(f"{where}: id is {value!r:.80}; give a text or a whole number")
    return value.strip()


def grades(value: Any, where: str) -> dict[str, int]:
    """Document ids with grades: an object, a list of ids, or one id; an id without a grade has 1."""
    if isinstance(value, Mapping):
        found: dict[str, int] = {}
        for key, grade in value.items():
            if isinstance(grade, float) and grade.is_integer():
                grade = int(grade)
            if isinstance(grade, bool) or not isinstance(grade, int):
                raise InvalidInputError(
                    f"{where}: relevant grades {str(key)!r:.80} with {grade!r:.40}; give a whole number"
                )
            found[str(key)] = grade
        return found
    items = value if isinstance(value, list) else [value]
    return {identifier(item, f"{where}: relevant"): 1 for item in items}


def truth(value: Any, where: str, field: str) -> bool:
    """True or false, also as a table writes them: yes, no, 1, 0, 是, 否."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, (str, int, float)) else ""
    if word not in _YES | _NO:
        raise InvalidInputError(f"{where}: {field} is {value!r:.80}; give true or false")
    return word in _YES


def spans(value: Any, where: str) -> list[dict[str, Any]]:
    """Gold spans: objects with ``document``, ``text`` and, where it is known, ``start``."""
    items = [value] if isinstance(value, Mapping) else value
    right = isinstance(items, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("text"), str) and "document" in item
        for item in items
    )
    if not right:
        raise InvalidInputError(
            f"{where}: spans is {value!r:.120}; give a list of objects with document, text and start"
        )
    return [
        {"document": str(item["document"]), "text": item["text"], "start": item.get("start")}
        for item in items
    ]


def turns(value: Any, where: str) -> list[dict[str, str]]:
    """Earlier turns: objects with ``question`` and ``answer``, pairs, or chat messages."""
    if not isinstance(value, list):
        raise InvalidInputError(f"{where}: history is {value!r:.120}; give a list of turns")
    found: list[dict[str, str]] = []
    for item in value:
        if isinstance(item, (list, tuple)) and len(item) == 2 and all(isinstance(part, str) for part in item):
            item = {"question": item[0], "answer": item[1]}
        if isinstance(item, Mapping) and {"question", "answer"} <= set(item):
            found.append({"question": str(item["question"]), "answer": str(item["answer"])})
            continue
        name, content = message(item)
        if name is None:
            raise InvalidInputError(
                f"{where}: a turn of history is {item!r:.80}; give question and answer, or role and content"
            )
        if name == "question":
            found.append({"question": content, "answer": ""})
        elif name == "answer" and found:
            found[-1]["answer"] = f"{found[-1]['answer']}\n{content}".strip()
    return found


def message(item: Any) -> tuple[str | None, str]:
    """``("question" | "answer" | "other", text)`` of a chat message as JSON; ``(None, "")`` where it is none."""
    if not isinstance(item, Mapping):
        return None, ""
    inner = item.get("data") or item.get("kwargs")
    if isinstance(inner, Mapping) and "content" in inner:  # as LangChain writes messages out
        written = item.get("id")
        named = written[-1] if isinstance(written, list) and written else ""
        role = item.get("type") if item.get("data") else named
        item = {**inner, "role": str(role).removesuffix("Message").removesuffix("Chunk").lower()}
    role, content = item.get("role") or item.get("type"), item.get("content")
    if isinstance(content, list):
        content = "\n".join(
            part if isinstance(part, str) else str(part.get("text") or "")
            for part in content
            if isinstance(part, (str, Mapping))
        )
    if not isinstance(role, str) or not isinstance(content, str):
        return None, ""
    return _ROLES.get(role.casefold(), "other"), content


def made_id(*parts: str | None) -> str:
    """An id from what an example holds: the same content has the same id in every file."""
    text = json.dumps(parts, ensure_ascii=True)
    return f"q-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def sequence_of_texts(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value)
    )
