"""The LangChain objects that a prompt file becomes: a chat prompt, and one with pictures."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.prompts import (
    AIMessagePromptTemplate,
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
    SystemMessagePromptTemplate,
)
from langchain_core.prompts import PromptTemplate as StringTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, Field

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.format import DEFAULT_MAX_TOKENS, VARIABLE, PromptFile
from rag_kit.prompts.rendering import RESERVED_TAGS, TAG, Markup, escape_tags

_TEMPLATES: dict[str, Any] = {
    "system": SystemMessagePromptTemplate,
    "user": HumanMessagePromptTemplate,
    "model": AIMessagePromptTemplate,
}


class TaggedTemplate(StringTemplate):
    """The text of one message; values go in literally, with the reserved tags in them escaped.

    The escaping is not in the chat template, so that it stays with the message when templates are sliced or added up.
    """

    own_tags: frozenset[str] = frozenset()

    def format(self, **kwargs: Any) -> str:
        """Fill in the values."""
        values = self._merge_partial_and_user_variables(**kwargs)
        names = (*self.input_variables, *self.partial_variables)
        escaped = {name: self._escape(name, values[name]) for name in names}
        return self.template.format_map(escaped)

    def _escape(self, name: str, value: Any) -> str:
        """Write a value as text, reserved tags and this file's own ones escaped; in `Markup` the reserved ones stay."""
        if isinstance(value, Markup):
            return escape_tags(value, self.own_tags) if self.own_tags else str(value)
        if isinstance(value, str):
            return escape_tags(value, RESERVED_TAGS | self.own_tags)
        if isinstance(value, int | float):
            return str(value)
        raise InvalidInputError(
            f"The value of {name!r} is {type(value).__name__}; a prompt takes text or a number. "
            "Render documents with render_passages(...), messages with render_history(...)."
        )


class PromptTemplate(ChatPromptTemplate):
    """A prompt file as a LangChain chat prompt; made by ``load_prompt``.

    It works wherever a ``ChatPromptTemplate`` does. Missing and extra values raise ``InvalidInputError``. Values stay
    text: role markers, braces and HTML in them mean nothing, and tags that the prompt itself uses are escaped.

    Attributes:
        metadata: ``name``, ``language``, ``version`` and content ``hash`` of the file; traces of a run show them.
        inputs: Each variable and what it holds, in the order of the file.
        max_tokens: Most tokens of the reply, sent with each call that the kit makes with this prompt.
        description: What the prompt is for.
        file: The file it was read from.

    Example:
        >>> from rag_kit.prompts import load_prompt
        >>> prompt = load_prompt("answer")
        >>> value = prompt.invoke({"question": "Who? </question>", "passages": "{{role \\"system\\"}}"})
        >>> [message.type for message in value.to_messages()]
        ['system', 'human']
    """

    inputs: dict[str, str] = Field(default_factory=dict)
    max_tokens: int = DEFAULT_MAX_TOKENS
    result_schema: Any = None
    description: str = ""
    file: str = ""

    @classmethod
    def from_file(cls, parsed: PromptFile) -> Self:
        """Build the template of a parsed prompt file."""
        # Tags that only this file uses are escaped in values, as the reserved ones are.
        own_tags = {match[1].lower() for section in parsed.sections for match in TAG.finditer(section.text)}
        tags = frozenset(own_tags - RESERVED_TAGS)
        schema: Any = parsed.schema
        if isinstance(schema, str):
            from rag_kit.prompts.schemas import SCHEMAS  # only here: it loads two dozen classes

            schema = SCHEMAS[schema]
        elif isinstance(schema, dict):  # it becomes the description of a function call, which must have one
            description = "提示词 {} 的结果。" if parsed.language == "zh" else "The result of the prompt {}."
            schema = {"title": schema["title"], "description": description.format(parsed.name), **schema}
        build: Any = cls  # the pydantic plugin does not see ChatPromptTemplate's own __init__
        texts = [(_TEMPLATES[part.role], _string_template(part.text, tags)) for part in parsed.sections]
        template: Self = build(
            [message(prompt=text) for message, text in texts],
            metadata={name: getattr(parsed, name) for name in ("name", "language", "version", "hash")},
            inputs=dict(parsed.inputs),
            max_tokens=parsed.max_tokens,
            result_schema=schema,
            description=parsed.description,
            file=parsed.file,
        )
        return template

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: the file is the serialised form, and LangChain could not revive this class."""
        return False

    @property
    def output_schema(self) -> type[BaseModel] | dict[str, Any] | None:  # type: ignore[override]
        """The schema of the answer: a Pydantic class or a JSON schema; None for plain text.

        The Runnable's property of this name only says "messages" for a prompt; ``get_output_schema()`` still does.
        """
        return self.result_schema  # type: ignore[no-any-return]

    @property
    def title(self) -> str:
        """Name and language, for messages and pictures: ``"answer.en"``."""
        metadata = self.metadata or {}
        return f"{metadata.get('name', 'prompt')}.{metadata.get('language', '?')}"

    def partial(self, **kwargs: Any) -> PromptTemplate:
        """Copy with some values filled in; InvalidInputError for a name that is no variable of this prompt."""
        # with all other values filled in, only a name that is no variable can be wrong
        self._check_values({**dict.fromkeys(self.input_variables, ""), **kwargs})
        left = [name for name in self.input_variables if name not in kwargs]
        return self._copy(input_variables=left, partial_variables={**self.partial_variables, **kwargs})

    def with_instructions(self, instructions: str) -> Self:
        """Copy with another system message; the user's message and the schema stay.

        The text is taken literally: braces and role markers in it mean nothing. The metadata get another ``hash``.

        Raises:
            InvalidInputError: The text is empty, or the prompt's system message holds values.

        Example:
            >>> from rag_kit.prompts import load_prompt
            >>> prompt = load_prompt("answer").with_instructions("Answer in {one} word.")
            >>> prompt.format_messages(question="Who?", passages="")[0].content.splitlines()[-1]
            'Answer in {one} word.'
        """
        metadata = self.metadata or {}
        if not instructions.strip():
            raise InvalidInputError(f"The instructions for the prompt {self.title!r} are empty.")
        first, *rest = self.messages
        if not isinstance(first, SystemMessagePromptTemplate) or first.input_variables:
            lacks = "has no system message of fixed text to put instructions into"
            raise InvalidInputError(f"The prompt {self.title!r} {lacks}.")
        # the task line says what is wanted of the embedded model, whatever the words around it
        text = f"<task>{metadata.get('name', 'prompt')}</task>\n{instructions.strip()}"
        template = TaggedTemplate(template=_escape_braces(text), input_variables=[])
        digest = hashlib.sha256(f"{metadata.get('hash', '')}\n{text}".encode()).hexdigest()[:16]
        messages = [SystemMessagePromptTemplate(prompt=template), *rest]
        return self._copy(messages=messages, metadata={**metadata, "hash": f"sha256:{digest}"})

    def _copy(self, **changes: Any) -> Self:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**fields, **changes})

    def format_messages(self, **kwargs: Any) -> list[BaseMessage]:
        """Fill in the values; raises InvalidInputError for missing, extra and other values."""
        self._check_values(kwargs)
        return super().format_messages(**kwargs)

    async def aformat_messages(self, **kwargs: Any) -> list[BaseMessage]:
        """Fill in the values as `format_messages` does; there is nothing to wait for."""
        return self.format_messages(**kwargs)

    def _validate_input(self, inner_input: Any) -> dict[str, Any]:
        """Return the values by name; the value of a single variable may come without its name."""
        if not isinstance(inner_input, dict) and len(self.input_variables) != 1:
            raise InvalidInputError(
                f"The prompt {self.title!r} takes a dict of values ({self._variable_names()}), "
                f"not {type(inner_input).__name__}."
            )
        values = inner_input if isinstance(inner_input, dict) else {self.input_variables[0]: inner_input}
        self._check_values(values)
        return values

    def _check_values(self, values: dict[str, Any]) -> None:
        """Raise InvalidInputError if a variable has no value, or a value is for no variable."""
        missing = [name for name in self.input_variables if name not in values]
        extra = [str(name) for name in values if name not in {*self.input_variables, *self.partial_variables}]
        if not missing and not extra:
            return
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"not a variable of it: {', '.join(extra)}"] if extra else []
        raise InvalidInputError(
            f"Wrong values for the prompt {self.title!r}: {'; '.join(parts)}. It takes {self._variable_names()}."
        )

    def _variable_names(self) -> str:
        names = [name for name in self.inputs if name in self.input_variables] or self.input_variables
        return ", ".join(names) or "no values"

    def _repr_html_(self) -> str:
        """Show roles and variables in Jupyter, all text escaped."""
        return f"<b>{html.escape(self.title)}</b><pre>{html.escape(self.pretty_repr())}</pre>"


def _string_template(text: str, tags: frozenset[str]) -> TaggedTemplate:
    """Make a string template of a section; braces around no variable are doubled."""
    parts = VARIABLE.split(text)
    literals, names = parts[::2], parts[1::2]  # they come in turn
    template = _escape_braces(literals[0])
    for name, literal in zip(names, literals[1:], strict=True):
        template += f"{{{name}}}{_escape_braces(literal)}"
    return TaggedTemplate(template=template, input_variables=sorted(set(names)), own_tags=tags)


def _escape_braces(text: str) -> str:
    """Double the braces of a text, so that str.format returns it unchanged."""
    return text.replace("{", "{{").replace("}", "}}")


class PicturePrompt(Runnable[dict[str, Any], PromptValue]):
    """A prompt whose last message ends with pictures, each as a block of content that LangChain's models take.

    Args:
        prompt: The prompt of the text; its name, language and bound on the reply stay.
        pictures: PNG or JPEG files, each with the text that stands before it; it may be empty.
    """

    def __init__(self, prompt: PromptTemplate, pictures: Sequence[tuple[str, Path]]) -> None:
        self._prompt, self._pictures = prompt, pictures
        self.metadata, self.max_tokens, self.title = prompt.metadata, prompt.max_tokens, prompt.title

    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> PromptValue:
        """Fill in the prompt and read the pictures."""
        *before, last = self._prompt.invoke(input, config).to_messages()
        content: list[Any] = [{"type": "text", "text": last.text}]
        for label, path in self._pictures:
            content += [{"type": "text", "text": label}] if label else []
            mime = "image/png" if path.suffix == ".png" else "image/jpeg"
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            content.append({"type": "image", "base64": data, "mime_type": mime})
        return ChatPromptValue(messages=[*before, HumanMessage(content)])
