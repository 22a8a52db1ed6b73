"""What a model fills in when it routes a question: its kind, the next sub-question, or sources out of a list."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema, create_model

from rag_kit.prompts.fields import Form, Line, bounded, lines, one_line, said

MAX_CHOICES = 100
_NAME: Any = said("The name of the source, exactly as it is listed.", "来源的名称，与列出的完全一致。")
_CHOICES: Any = said(
    "The sources that fit the question, the best first; an empty list if none fits.",
    "适合这个问题的来源，最合适的排在最前；都不合适时为空列表。",
)


def _choice(*names: str) -> Any:
    """A text out of a list. What another model writes is read too: who asked judges it."""
    return Annotated[
        str,
        BeforeValidator(lambda value: one_line(value).lower()),
        WithJsonSchema({"type": "string", "enum": list(names)}),
    ]


_Intent: Any = _choice("question", "chat", "unclear")
_Complexity: Any = _choice("none", "single", "multi")


class Classification(Form):
    """What a question needs.

    Example:
        >>> Classification(intent="question", complexity="Multi", reason="Two facts.").complexity
        'multi'
    """

    intent: _Intent = said(
        "'question', 'chat' for talk, or 'unclear' if the meaning is unclear.",
        "'question' 为提问，'chat' 为闲聊，看不出想问什么则为 'unclear'。",
    )
    complexity: _Complexity = said(
        "'none' if nothing has to be looked up, 'single' for one search, 'multi' for several steps.",
        "什么都不用查为 'none'，查一次就够为 'single'，需要分几步查为 'multi'。",
    )
    reason: Line = said("Why, in one short sentence.", "理由，用一个短句说明。")


class NextHop(Form):
    """The next sub-question, or that there is none.

    Example:
        >>> NextHop(done=True, query=None).query
        ''
    """

    done: bool = said(
        "True if what was found is enough, or nothing more can be found.",
        "已找到的内容足够，或者再也找不到更多时为 true。",
    )
    query: Line = said(
        "The next question, complete in itself; empty if done.", "下一个问题，能独立看懂；已经完成时为空。"
    )


class RouteChoice(Form):
    """One source that fits, and why.

    Example:
        >>> RouteChoice(name="manuals", reason="The question is about repairs.").name
        'manuals'
    """

    name: str = _NAME
    reason: Line = said("Why it fits, in one short sentence.", "为什么合适，用一个短句说明。")


def _choices(value: Any) -> Any:
    """A validator: names alone, one name, or a mapping of name to reason are read too; who asked judges names."""
    if isinstance(value, dict):
        value = [value] if "name" in value else [{"name": name, "reason": why} for name, why in value.items()]
    found = bounded(MAX_CHOICES)(lines(value))
    named = [{"name": item} if isinstance(item, str) else item for item in found]
    return [
        {"name": item.get("name"), "reason": item.get("reason")} if isinstance(item, dict) else item
        for item in named
    ]


class Routes(Form):
    """The sources that fit a question, the best first; none if none fits.

    Example:
        >>> Routes(choices=["manuals"]).choices[0].name
        'manuals'
    """

    choices: Annotated[list[RouteChoice], BeforeValidator(_choices)] = _CHOICES


@lru_cache(maxsize=128)
def routes_among(names: tuple[str, ...]) -> type[Routes]:
    """``Routes`` whose JSON schema lists the names that are allowed.

    A model in strict mode cannot name anything else. What another model names beside the list is read all the
    same, so that one wrong name does not lose the right ones: who asked drops it.

    Args:
        names: The allowed names.

    Returns:
        A class.

    Example:
        >>> schema = routes_among(("manuals", "laws")).model_json_schema()
        >>> schema["$defs"]["RouteChoice"]["properties"]["name"]["enum"]
        ['manuals', 'laws']
    """
    listed = WithJsonSchema({"type": "string", "enum": list(names), "description": _NAME.description})
    choice: Any = create_model("RouteChoice", __base__=RouteChoice, name=(Annotated[str, listed], ...))
    return create_model(
        "Routes",
        __base__=Routes,
        choices=(Annotated[list[choice], BeforeValidator(_choices)], _CHOICES),
    )
