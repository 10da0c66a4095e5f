"""Functions whose keyword arguments are those of a `TypedDict`: ``help`` and completion list each with its meaning."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Unset:
    """The default of an argument that may be left out. Its meaning tells what happens then."""

    def __repr__(self) -> str:
        return "..."


_UNSET = _Unset()


def with_options(options: type) -> Callable[[_Function], _Function]:
    """Describes a function that takes ``**options``."""

    def describe(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        kinds = options.__annotations__
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_UNSET, annotation=_shown(kind))
            for name, kind in kinds.items()
        ]
        function.__signature__ = signature.replace(parameters=own + keywords)  # type: ignore[attr-defined]
        meanings = _meanings(options)
        lines = [f"    {name}: {meanings[name]}" for name in kinds if name in meanings]
        if lines and function.__doc__:
            function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__), "", "Keyword arguments:", *lines])
        return function

    return describe


def _shown(kind: object) -> object:
    return getattr(kind, "__forward_arg__", kind)


def _meanings(options: type) -> dict[str, str]:
    """The sentence behind each field, of this class and of those that it extends."""
    classes = _classes(sys.modules[options.__module__].__file__ or "")
    meanings: dict[str, str] = {}
    names = [options.__name__]
    for name in names:
        bases, fields = classes.get(name, ([], {}))
        names.extend(bases)
        meanings = {**fields, **meanings}
    return meanings


@cache
def _classes(file: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The classes of a module: their bases, and the text behind each field. Without the source there are none."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    classes = {}
    for definition in tree.body:
        if not isinstance(definition, ast.ClassDef):
            continue
        fields = {}
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                fields[field.target.id] = " ".join(str(text.value.value).split())
        bases = [base.id for base in definition.bases if isinstance(base, ast.Name)]
        classes[definition.name] = (bases, fields)
    return classes
