"""What an operation in C++ does with a name, as far as its text tells."""

import re

_STEP = r"(?:\+\+|--)"
_COMPOUND = r"(?:[-+*/%&|^]|<<|>>)="
_ASSIGNED = rf"(?<![\w.>]){{name}}(?:\s*\[[^\]]*\])?\s*(?:=(?!=)|{_COMPOUND}|{_STEP})"
_UPDATED = rf"(?<![\w.>]){{name}}\s*(?:{_COMPOUND}|{_STEP})"
_STEPPED = rf"{_STEP}\s*{{name}}\b"
_READ = r"(?<![\w.>]){name}\b(?!\s*=(?!=))"


def _mentions(name: str, operation: str, *patterns: str) -> bool:
    return any(re.search(one.format(name=re.escape(name)), operation) for one in patterns)


def is_assigned(name: str, operation: str) -> bool:
    """Whether it, or an element of it, is given a value, or changed."""
    return _mentions(name, operation, _ASSIGNED, _STEPPED)


def is_updated(name: str, operation: str) -> bool:
    """Whether its value becomes another one that follows from it."""
    return _mentions(name, operation, _UPDATED, _STEPPED)


def is_read(name: str, operation: str) -> bool:
    """Whether it stands elsewhere than where it is assigned, and what it was may be used."""
    return _mentions(name, operation, _READ)
