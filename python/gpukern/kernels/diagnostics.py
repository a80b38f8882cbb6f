"""What the compiler says of a source, in the user's lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpukern import _core

_MESSAGE = re.compile(r"^(.+?)\((\d+)\): ((?:catastrophic )?error|warning)(?: #[\w-]+)?: (.*)$")
_OF_THE_HOST = re.compile(r"^(.+?):(\d+):(\d+): ((?:fatal )?error|warning): (.*)$")
_NEVER = "cannot be simulated"
_OURS = "what gpukern adds"
_AROUND = 2
_MOST_ERRORS = 5

# By a pattern of the message; the cure says what stands in the pattern's groups.
_HINTS = (
    (
        r"Instruction '(?:vote|shfl)' without '.sync'",
        "since CUDA 9 the threads that take part are named: __any_sync, __all_sync, __ballot_sync "
        "and __shfl_sync take a mask first, such as 0xffffffff",
    ),
    (
        r'identifier "__(shfl(?:_up|_down|_xor)?|any|all|ballot)" is undefined',
        "since CUDA 9 the threads that take part are named: __{0}_sync(0xffffffff, ...)",
    ),
    (
        r'(?:cannot open source file|could not open source file) "((?:cuda_fp\w+|cuda_bf16'
        r"|cooperative_groups|cuda/\S+|cub/\S+|nv/\S+)(?:\.\w+)?)",
        "{0} is of CUDA's own headers: pip install nvidia-cuda-runtime nvidia-cuda-cccl",
    ),
    (
        r'(?:cannot open source file|could not open source file) "(curand\w*\.h)"',
        "{0} is of cuRAND: pip install nvidia-curand",
    ),
    (
        r'(?:cannot open source file|could not open source file) "(\w+)"',
        "<{0}> is for code on the host; of the C++ library a kernel has what begins with cuda/std",
    ),
    (
        r'(?:cannot open source file|could not open source file) "(.+?)"',
        'options=["-I/its/folder"] says where {0} is',
    ),
    (
        r'identifier "(cuda[A-Z]\w*)" is undefined',
        "{0} is for code on the host; here Python is the host: leave main() out, and pass arrays "
        "to the kernel",
    ),
    (r'identifier "(__half2?|half2?)" is undefined', "#include <cuda_fp16.h> has {0}"),
    (
        r'identifier "(__nv_bfloat16\w*|nv_bfloat16\w*)" is undefined',
        "#include <cuda_bf16.h> has {0}",
    ),
    (
        r"calling a __host__ function|considered a host function",
        "a function that a kernel calls is marked with __device__; what runs on the host, such as "
        "main(), stays out of the source",
    ),
    (
        r"invalid value for --gpu-architecture",
        "this NVRTC does not know that GPU; a newer one may: pip install -U nvidia-cuda-nvrtc",
    ),
    (
        r'"of" is not a function or static data member',
        "what gpukern adds to a source to know its kernels needs -std=c++14 or newer",
    ),
    (r"unrecognized option (\S+)", "NVRTC does not know {0}, which nvcc may"),
    (
        r'more than one instance of overloaded function "(\w+)"|overloaded function "(\w+)"',
        "give the kernels names of their own",
    ),
    (
        r'ambiguous "\?" operation: .*"(?:const )?(__half|__nv_bfloat16)"',
        "the two sides of ?: have to be of one type: write {0}(...) round the other",
    ),
    # The same of a compiler of the host, in its words.
    (
        r"operands to '\?:' have different types .*\b(__half|__nv_bfloat16)'",
        "the two sides of ?: have to be of one type: write {0}(...) round the other",
    ),
    (
        r"(?:^|\W)((?:cuda_fp\w+|cuda_bf16|cub/\S+|cuda/\S+|nv/\S+)(?:\.\w+)?): No such file",
        "{0} is of CUDA's own headers: pip install nvidia-cuda-runtime nvidia-cuda-cccl",
    ),
    (r"^(\w+): No such file", "<{0}> is for code on the host, and a kernel has none of it"),
    (r"^(\S+): No such file", 'options=["-I/its/folder"] says where {0} is'),
    (
        r"__(shfl(?:_up|_down|_xor)?|any|all|ballot)\W+was not declared",
        "since CUDA 9 the threads that take part are named: __{0}_sync(0xffffffff, ...)",
    ),
    (
        r"\b(cuda[A-Z]\w*)\W+was not declared",
        "{0} is for code on the host; here Python is the host: leave main() out, and pass arrays "
        "to the kernel",
    ),
    (
        r"\W(__half2?|half2?)\W+(?:was not declared|does not name a type|has not been declared)",
        "#include <cuda_fp16.h> has {0}",
    ),
    (
        r"\W(__nv_bfloat16\w*)\W+(?:was not declared|does not name a type)",
        "#include <cuda_bf16.h> has {0}",
    ),
    (
        r"the frame size of \d+ bytes is larger than (\d+) bytes",
        "on the simulator a function has {0} bytes for arrays of its own; give the kernel an array",
    ),
    (
        r"expected primary-expression before .<. token",
        "a launch with <<<...>>> is for code on the host, or dynamic parallelism, which cannot be "
        "simulated; kernel(grid, block, ...) launches from Python",
    ),
)


class CompileError(_core.CudaError):
    """A source in CUDA C++ does not compile; ``log`` is all that the compiler says."""

    def __init__(self, text: str, log: str = "") -> None:
        super().__init__(text)
        self.log = log

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.log)


def _hint(message: str) -> str | None:
    for pattern, cure in _HINTS:
        if match := re.search(pattern, message):
            return cure.format(*(group or "" for group in match.groups()))
    return None


def around(lines: list[str], number: int, column: int | None) -> Iterator[str]:
    """The lines round one, and a caret under its column."""
    width = len(str(number + _AROUND))
    for at in range(max(1, number - _AROUND), min(len(lines), number + _AROUND) + 1):
        line = lines[at - 1].replace("\t", " ")
        yield f"  {at:>{width}} | {line}".rstrip()
        if at == number and column is not None:
            yield f"  {'':>{width}} | {' ' * column}^"


def _column(log: list[str], at: int) -> int | None:
    """Where the caret stands that the compiler puts under the line, two behind the margin."""
    for line in log[at + 1 : at + 4]:
        if line.strip() == "^":
            return max(line.index("^") - 2, 0)
    return None


@dataclass(frozen=True)
class _Said:
    """A message of a compiler: NVRTC's, or the host's."""

    file: str
    line: int
    column: int | None
    level: str
    text: str


def _said(log: list[str]) -> Iterator[_Said]:
    for at, line in enumerate(log):
        if found := _MESSAGE.match(line):
            yield _Said(found[1], int(found[2]), _column(log, at), found[3], found[4])
        elif found := _OF_THE_HOST.match(line):
            level = found[4].removeprefix("fatal ")
            yield _Said(found[1], int(found[2]), int(found[3]) - 1, level, found[5])


def _errors(log: str) -> list[_Said]:
    """What is wrong; what follows from it is left out where that can be told."""
    errors = [said for said in _said(log.splitlines()) if "error" in said.level]
    never = [said for said in errors if _NEVER in said.text]
    return never or [said for said in errors if said.file != _OURS] or errors


def _one(name: str, lines: list[str], said: _Said) -> list[str]:
    text = [f"{said.file}:{said.line}: {said.level}: {said.text}"]
    if said.file == name and 1 <= said.line <= len(lines):
        text += around(lines, said.line, said.column)
    if hint := _hint(said.text):
        text.append(f"  hint: {hint}")
    return text


def explain(name: str, source: str, log: str) -> CompileError:
    """The error of a source that does not compile."""
    lines, errors = source.splitlines(), _errors(log)
    if not errors:
        hint = _hint(log)
        text = f"compile: {name} does not compile: {' '.join(log.split())}"
        return CompileError(f"{text}; {hint}" if hint else text, log)
    count = f"{len(errors)} errors" if len(errors) > 1 else "an error"
    told = [f"compile: {name} does not compile, for {count}"]
    for said in errors[:_MOST_ERRORS]:
        told += _one(name, lines, said)
    if len(errors) > _MOST_ERRORS:
        told.append(f"and {len(errors) - _MOST_ERRORS} more, in the log of the exception")
    return CompileError("\n".join(told), log)


def warnings_in(log: str) -> str:
    """What the compiler says beside of how it spends registers."""
    lines = [line for line in log.splitlines() if not line.startswith("ptxas ")]
    return "\n".join(lines).strip()


def spills_in(log: str) -> dict[str, int]:
    """Bytes that each kernel, by its symbol, spills from registers to memory."""
    spills: dict[str, int] = {}
    symbol = ""
    for line in log.splitlines():
        if named := re.search(r"Function properties for (\S+)", line):
            symbol = named[1]
        elif stores := re.search(r"(\d+) bytes spill stores", line):
            spills[symbol] = int(stores[1])
    return spills
