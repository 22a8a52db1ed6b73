"""What a model fills in when it routes a question: its kind, the next sub-question, or sources out of a list."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from rag_kit.prompts.fields import Form, bounded, one_line

MAX_CHOICES = 100
_NAME = "The name of the source, exactly as it is listed."
_CHOICES = "The sources that fit the question, the best first; an empty list if none fits."


def _choice(*names: str) -> Any:
    """A text out of a list. What another model writes is read too: who asked judges it."""
    return Annotated[
        str,
        BeforeValidator(lambda value: one_line(value).lower()),
        WithJsonSchema({"type": "string", "enum": list(names)}),
    ]


class Classification(Form):
    """What a question needs.

    Example:
        >>> Classification(intent="question", complexity="Multi", reason="Two facts.").complexity
        'multi'
    """

    intent: _choice("question", "chat", "unclear") = Field(  # type: ignore[valid-type]
        description="'question', 'chat' for talk, or 'unclear' if the meaning is unclear."
    )
    complexity: _choice("none", "single", "multi") = Field(  # type: ignore[valid-type]
        description="'none' if nothing has to be looked up, 'single' for one search, 'multi' for several steps."
    )
    reason: Annotated[str, BeforeValidator(one_line)] = Field(description="Why, in one short sentence.")


class NextHop(Form):
    """The next sub-question, or that there is none.

    Example:
        >>> NextHop(done=True, query=None).query
        ''
    """

    done: bool = Field(description="True if what was found is enough, or nothing more can be found.")
    query: Annotated[str, BeforeValidator(one_line), WithJsonSchema({"type": "string"})] = Field(
        description="The next question, complete in itself; empty if done."
    )


class RouteChoice(Form):
    """One source that fits, and why.

    Example:
        >>> RouteChoice(name="manuals", reason="The question is about repairs.").name
        'manuals'
    """

    name: str = Field(description=_NAME)
    reason: Annotated[str, BeforeValidator(one_line)] = Field(
        description="Why it fits, in one short sentence."
    )


def _choices(value: Any) -> Any:
    """A validator: names alone, one name, or a mapping of name to reason are read too; who asked judges names."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [line.strip(" -*\t") for line in value.splitlines() if line.strip(" -*\t")]
    if isinstance(value, dict):
        value = [value] if "name" in value else [{"name": name, "reason": why} for name, why in value.items()]
    return [
        {"name": item, "reason": ""}
        if isinstance(item, str)
        else {"name": item.get("name"), "reason": item.get("reason")}
        if isinstance(item, dict)
        else item
        for item in bounded(MAX_CHOICES)(value)
    ]


class Routes(Form):
    """The sources that fit a question, the best first; none if none fits.

    Example:
        >>> Routes(choices=["manuals"]).choices[0].name
        'manuals'
    """

    choices: Annotated[list[RouteChoice], BeforeValidator(_choices)] = Field(description=_CHOICES)


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
    listed = WithJsonSchema({"type": "string", "enum": list(names), "description": _NAME})
    choice: Any = create_model("RouteChoice", __base__=RouteChoice, name=(Annotated[str, listed], ...))
    return create_model(
        "Routes",
        __base__=Routes,
        choices=(Annotated[list[choice], BeforeValidator(_choices)], Field(description=_CHOICES)),
    )
