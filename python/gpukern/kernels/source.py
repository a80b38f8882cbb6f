"""What a source in CUDA C++ shows without a compiler: its kernels, as written, and its includes.

The compiler has the last word: what is not found here is asked for when it is used.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|R\"(\w*)\(.*?\)\1\"", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|\"([^\"\n]+)\"|(\S+))", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAMESPACE = re.compile(r"\bnamespace\s+((?:\w+\s*::\s*)*\w+)\s*$")
_NAMELESS = re.compile(r"(?:\bextern\s*|\bnamespace\s*|\binline\s+namespace\s*\w*\s*)$")
_DECLARED = re.compile(r"\s[*&]*([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")
# What stands between __global__ and a kernel's name, and has arguments too.
_ATTRIBUTES = {
    "__launch_bounds__",
    "__cluster_dims__",
    "__block_size__",
    "__maxnreg__",
    "__attribute__",
    "__declspec",
    "alignas",
    "noexcept",
}


@dataclass(frozen=True)
class Written:
    """A kernel as the source has it: its name with namespaces, and its parameters."""

    name: str
    parameters: tuple[str, ...]
    is_template: bool


def without_comments(source: str) -> str:
    """The source with comments and texts blanked; every other character stays in its place."""
    return _NOT_CODE.sub(_blanked, source)


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _closing(code: str, opening: int, pair: str = "()") -> int:
    """Where the parenthesis ends that begins there; the end of the code where it does not."""
    depth = 0
    for place in range(opening, len(code)):
        depth += (code[place] == pair[0]) - (code[place] == pair[1])
        if depth == 0:
            return place
    return len(code)


def _split(parameters: str) -> Iterator[str]:
    """At the commas that are of the list itself."""
    depth, start = 0, 0
    for place, letter in enumerate(parameters):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and depth == 0:
            yield parameters[start:place]
            start = place + 1
    yield parameters[start:]


def _listed(parameters: str) -> tuple[str, ...]:
    texts = [" ".join(text.partition("=")[0].split()) for text in _split(parameters)]
    return () if texts in ([""], ["void"]) else tuple(texts)


def _namespaces(code: str, place: int) -> list[str] | None:
    """The namespaces that are open at a place; None inside of anything else."""
    open_blocks: list[str | None] = []
    for match in re.finditer(r"[{}]", code[:place]):
        if match[0] == "}":
            if open_blocks:
                open_blocks.pop()
            continue
        before = code[max(0, match.start() - 200) : match.start()]
        named = _NAMESPACE.search(before)
        if _NAMELESS.search(before):
            open_blocks.append("")
        else:
            open_blocks.append(re.sub(r"\s", "", named[1]) if named else None)
    if None in open_blocks:
        return None
    return [name for name in open_blocks if name]


def _is_template(code: str, place: int) -> bool:
    """Whether the declaration that has something at a place begins with `template`."""
    start = max(code.rfind(mark, 0, place) for mark in ";{}") + 1
    return re.search(r"\btemplate\s*<", code[start:place]) is not None


def _heads(code: str) -> Iterator[tuple[str, int, int]]:
    """Of each kernel its name, and where it is marked and its parameters begin."""
    for mark in re.finditer(r"\b__global__\b", code):
        place = mark.end()
        while word := _WORD.search(code, place):
            opening = re.compile(r"\s*\(").match(code, word.end())
            if opening and word[0] not in _ATTRIBUTES:
                break
            place = _closing(code, opening.end() - 1) if opening else word.end()
        around = _namespaces(code, mark.start())
        if (
            not word
            or not opening
            or around is None
            or set("{};") & set(code[mark.end() : word.start()])
        ):
            continue
        yield "::".join([*around, word[0]]), mark.start(), opening.end()


def kernels(source: str) -> list[Written]:
    """The kernels that a source has in so many words."""
    code = _DIRECTIVE.sub(_blanked, without_comments(source))
    found: dict[str, Written] = {}
    for name, start, opening in _heads(code):
        inside = code[opening : _closing(code, opening - 1)]
        found.setdefault(name, Written(name, _listed(inside), _is_template(code, start)))
    return list(found.values())


def variables(source: str) -> list[str]:
    """The variables of device memory that a source has in so many words, with their namespaces."""
    code = _DIRECTIVE.sub(_blanked, without_comments(source))
    return list(dict.fromkeys(_declared(code)))


def _declared(code: str) -> Iterator[str]:
    """Each variable, as often as it is declared."""
    for mark in re.finditer(r"\b__(?:constant|device)__\b", code):
        end = re.compile(r"[;={(,]").search(code, mark.end())
        if end is None or end[0] == "(" or _is_template(code, mark.start()):
            continue
        named = _DECLARED.search(code[mark.end() : end.start()])
        around = _namespaces(code, mark.start())
        if named and around is not None and "}" not in code[mark.end() : end.start()]:
            yield "::".join([*around, named[1]])


def may_use(source: str, kernel: str, variable: str) -> bool:
    """Whether a kernel may use a variable of the source: it does not where the variable's name
    stands only in its declaration and in the bodies of kernels of other names."""
    own, name = _last(kernel.partition("<")[0]), _last(variable)
    text = without_comments(source)
    code = _DIRECTIVE.sub(_blanked, text)
    declared = sum(_last(one) == name for one in _declared(code))
    named = re.compile(rf"\b{re.escape(name)}\b")
    count = len(named.findall(text)) - declared
    for other, _, opening in _heads(code):
        body = re.compile(r"\s*\{").match(code, _closing(code, opening - 1) + 1)
        if body and _last(other) != own:
            end = _closing(code, body.end() - 1, "{}")
            count -= len(named.findall(code, body.end(), end))
    return count > 0 or "##" in text or "<<<" in code  # names and calls that are not in the text


def _last(name: str) -> str:
    """The name without its namespaces."""
    return name.rpartition("::")[2].strip()


def includes(source: str) -> list[tuple[str, bool]] | None:
    """The headers that a source names, and whether in quotes; None where a macro names one."""
    found: list[tuple[str, bool]] = []
    for system, own, macro in _INCLUDE.findall(re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL)):
        if macro:
            return None
        found.append((system or own, not system))
    return found
