"""What a model fills in when it routes a question: names out of a closed list, with reasons."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

MAX_CHOICES = 100
MAX_REASON = 500
_NAME = "The name of the source, exactly as it is listed."
_CHOICES = "The sources that fit the question, the best first; an empty list if none fits."


def _short(value: Any) -> Any:
    """A validator: a reason of bearable length; a missing one is empty."""
    return "" if value is None else " ".join(str(value).split())[:MAX_REASON]


class RouteChoice(BaseModel):
    """One source that fits, and why.

    Example:
        >>> RouteChoice(name="manuals", reason="The question is about repairs.").name
        'manuals'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description=_NAME)
    reason: Annotated[str, BeforeValidator(_short)] = Field(description="Why it fits, in one short sentence.")


def _choices(value: Any) -> Any:
    """A validator: names alone, one name, or a mapping of name to reason are read too; who asked judges names."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [line.strip(" -*\t") for line in value.splitlines() if line.strip(" -*\t")]
    if isinstance(value, dict):
        value = [value] if "name" in value else [{"name": name, "reason": why} for name, why in value.items()]
    if not isinstance(value, list):
        raise ValueError("must be a list of choices")
    if len(value) > MAX_CHOICES:
        raise ValueError(f"has {len(value)} entries; at most {MAX_CHOICES} are allowed")
    return [
        {"name": item, "reason": ""}
        if isinstance(item, str)
        else {"name": item.get("name"), "reason": item.get("reason")}
        if isinstance(item, dict)
        else item
        for item in value
    ]


class Routes(BaseModel):
    """The sources that fit a question, the best first; none if none fits.

    Example:
        >>> Routes(choices=["manuals"]).choices[0].name
        'manuals'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
