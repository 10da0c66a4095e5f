"""Texts that change whenever the code of a controller does, so that stored results of other code do not count."""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .cc import Controller

_CONSTANTS = (type(None), bool, int, float, complex, type(Ellipsis))
_OF_THE_CLASS_ALONE = {
    "__annotations__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__static_attributes__",
    "__weakref__",
}
"""Attributes of classes that change without their code."""

_MOST_VALUES = 200_000
"""Values that are read: some tenths of a second."""
_MOST_BYTES = 64 << 20
"""Bytes of other objects that are read."""


def revision_of(make: Callable[[], Controller]) -> str:
    """The text for a class, or for another callable that makes controllers.

    It has the code of the class, of its bases, and of the functions, classes and constants that they name. Of other packages it has the
    source of the module. An attribute ``revision`` stands for its class. What cannot be read, or is too large, gives another text in
    each process.
    """
    walk = _Walk(_package_of(make.func if isinstance(make, functools.partial) else make))
    try:
        walk.value(make)
    except Exception:
        # It is not known again, so that nobody gets the results of something else.
        return os.urandom(32).hex()
    return walk.digest.hexdigest()


class _TooLarge(Exception):
    """A controller refers to more than can be read each time that it is used."""


class _Walk:
    def __init__(self, own: str) -> None:
        self.digest = hashlib.sha256()
        self._own = own
        """The package of the controller, whose code is read wherever it is."""
        self._seen: dict[int, Any] = {}
        self._values = 0
        self._bytes = 0

    def value(self, value: Any) -> None:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise _TooLarge
        if isinstance(value, _CONSTANTS):
            self._word(f"{type(value).__name__} {value!r}")
        elif isinstance(value, (str, bytes)):
            content = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            self._word(f"{type(value).__name__} {len(content)}")
            self.write(content)
        elif id(value) in self._seen:
            self._word("again")
        else:
            # Kept, so that no other object gets its number.
            self._seen[id(value)] = value
            self._object(value)

    def _object(self, value: Any) -> None:
        self._word(type(value).__name__)
        if isinstance(value, (list, tuple)):
            self._all(value)
        elif isinstance(value, (set, frozenset)):
            self._all(sorted(value, key=repr))
        elif isinstance(value, Mapping):
            self._items(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._all((value.__func__, value.__self__))
        elif isinstance(value, (staticmethod, classmethod)):
            self.value(value.__func__)
        elif isinstance(value, property):
            self._all((value.fget, value.fset, value.fdel))
        elif isinstance(value, functools.partial):
            self._all((value.func, value.args, value.keywords))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, (types.BuiltinFunctionType, types.MemberDescriptorType, types.GetSetDescriptorType)):
            self._word(value.__qualname__)
        else:
            self._pickled(value)

    def _class(self, value: type) -> None:
        self._word(value.__qualname__)
        revision = value.__dict__.get("revision")
        if isinstance(revision, str):
            self.value(revision)
        elif not self._is_foreign(value):
            self._items({name: own for name, own in value.__dict__.items() if name not in _OF_THE_CLASS_ALONE})
            self._all(value.__bases__)

    def _function(self, value: types.FunctionType) -> None:
        self._word(value.__qualname__)
        if self._is_foreign(value):
            return
        self._code(value.__code__)
        self._all((value.__defaults__, value.__kwdefaults__))
        for cell in value.__closure__ or ():
            self.value(_content(cell))
        known = value.__globals__
        for name in sorted(set(_names(value.__code__)) & known.keys()):
            self._word(name)
            self.value(known[name])

    def _is_foreign(self, value: Any) -> bool:
        """Whether it is of another package, whose module is read in its place."""
        package = _package_of(value)
        if package == self._own or not _is_installed(package):
            return False
        self._module(sys.modules.get(value.__module__))
        return True

    def _code(self, code: types.CodeType) -> None:
        self.value(code.co_code)
        for own in (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount, code.co_flags):
            self.value(own)
        self._all(code.co_consts)

    def _module(self, value: types.ModuleType | None) -> None:
        name = value.__name__ if value else ""
        self._word(name)
        file = getattr(value, "__file__", None) or ""
        # This package is in the key of each run, and Python in its code.
        if file.endswith(".py") and not _is_of_python(name.partition(".")[0]):
            with open(file, "rb") as source:
                self.value(source.read())

    def _pickled(self, value: Any) -> None:
        pickle.Pickler(self, protocol=4).dump(value)

    def write(self, content: bytes) -> int:
        """Takes what is pickled."""
        view = memoryview(content)
        self._bytes += view.nbytes
        if self._bytes > _MOST_BYTES:
            raise _TooLarge
        self.digest.update(view)
        return view.nbytes

    def _all(self, values: Any) -> None:
        self._word(f"{len(values)}")
        for value in values:
            self.value(value)

    def _items(self, items: Mapping[Any, Any]) -> None:
        for name in sorted(items, key=repr):
            self.value(name)
            self.value(items[name])

    def _word(self, word: str) -> None:
        self.digest.update(f"{len(word)} {word}\n".encode("utf-8", "surrogatepass"))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _package_of(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def _is_of_python(package: str) -> bool:
    return package in sys.builtin_module_names or package in sys.stdlib_module_names or package == __package__


def _is_installed(package: str) -> bool:
    """Whether a package is of Python, or was installed, so that it is not the user's code of today."""
    if package == "__main__":
        return False
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return _is_of_python(package) or f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
