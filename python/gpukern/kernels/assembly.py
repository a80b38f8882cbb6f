"""What becomes of a host compiler's assembly on its way to a module of the simulator.

The compiler calls a function before each access to memory (``-fsanitize=thread``), in each basic
block (``-fsanitize-coverage=trace-pc``) and where a check fails; here these calls get the names
that the simulator has for them, and each access its entry in a table of the user's lines. Shared
memory of no length is put where the dynamic shared memory lies.
"""

import re
from collections.abc import Iterator, Sequence

# As in cuda/sim/sim.h: GK_SIM_DYNAMIC_BYTES.
DYNAMIC_BYTES = 49152 + 256

_CALL = re.compile(r"^\t(call|jmp|bl|b)\t([A-Za-z_]\w*)(@PLT)?$")
_OURS = re.compile(
    r"__tsan_\w+|__ubsan_handle_\w+|__sanitizer_cov_trace_pc|__assertfail"
    r"|mem(?:cpy|set|move)|printf|clock"
)
_WATCHED = re.compile(r"__tsan_(?!func_|init|atomic_thread_fence)\w+|mem(?:cpy|set|move)")
_GUARD = "_ZGV"
_DROPPED = re.compile(r"__tsan_func_(?:entry|exit)")
_FILE = re.compile(r'^\t\.file (\d+) "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"^\t\.loc (\d+) (\d+)")
_THREAD_LOCAL = re.compile(
    r"([A-Za-z_.$][\w.$]*)@(?:tlsgd|tlsld|gottpoff|dtpoff|tpoff)|:tls\w*:([A-Za-z_.$][\w.$]*)"
)
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):", re.MULTILINE)
_BLOCK = "gk_sim_dynamic_block"
_OF_THE_SIMULATOR = {_BLOCK, "gk_sim_now"}
_ROW = re.compile(r"^_ZN16gk_signature_rowILi(\d+)E(\w+)2ofE:", re.MULTILINE)


def signatures(assembly: str) -> dict[int, str]:
    """The symbols that tell what kernels take, by the kernels' numbers."""
    return {int(number): symbol for number, symbol in _ROW.findall(assembly)}


def for_the_simulator(assembly: str, others: Sequence[str]) -> str:
    """As the simulator takes it; lines of files below ``others`` are not the user's."""
    text = "\n".join(_renamed(assembly, tuple(others)))
    return text + "\n" + _dynamic_shared(assembly)


def _renamed(assembly: str, others: tuple[str, ...]) -> Iterator[str]:
    files: dict[str, str] = {}
    place = ("", "0")
    table: list[tuple[str, str]] = []
    before = ""
    for line in assembly.splitlines():
        # Whether a variable has been made is no business of the user's.
        is_guard, before = _GUARD in before, line
        if named := _FILE.match(line):
            folder, file = (named[2], named[3]) if named[3] else ("", named[2])
            files[named[1]] = f"{folder}/{file}" if folder and file[:1] != "/" else file
        elif (at := _LOC.match(line)) and not files.get(at[1], "").startswith(others):
            place = (at[1], at[2])
        call = _CALL.match(line)
        if not call or not _OURS.fullmatch(call[2]):
            yield line
        elif not _DROPPED.fullmatch(call[2]) and not is_guard:
            yield f"\t{call[1]}\tgk_sim_{call[2]}{call[3] or ''}"
            if _WATCHED.fullmatch(call[2]):
                yield f".Lgk_sim_after{len(table)}:"
                table.append(place)
    yield from _lines(table, files)


def _lines(table: list[tuple[str, str]], files: dict[str, str]) -> Iterator[str]:
    """The table of gk_sim_line."""
    yield '\t.section\t.data.rel.ro,"aw"'
    yield "\t.p2align 3"
    yield "\t.globl\tgk_sim_module_lines"
    yield "gk_sim_module_lines:"
    for number, (file, line) in enumerate(table):
        yield f"\t.quad\t.Lgk_sim_after{number}, .Lgk_sim_file{file or 'x'}, {line}"
    yield "\t.quad\t0, 0, 0"
    yield "\t.section\t.rodata"
    for file in sorted({file for file, _ in table}):
        yield f".Lgk_sim_file{file or 'x'}:"
        yield f'\t.string "{files.get(file, "source")}"'


def _dynamic_shared(assembly: str) -> str:
    """Where the dynamic shared memory lies, by each name that the source has for it."""
    defined = set(_LABEL.findall(assembly))
    named = {first or second for first, second in _THREAD_LOCAL.findall(assembly)}
    lines = ['\t.section\t.tbss,"awT",%nobits', "\t.p2align 8", f"\t.globl\t{_BLOCK}"]
    lines += [f"\t.hidden\t{_BLOCK}", f"{_BLOCK}:"]
    for name in sorted(named - defined - _OF_THE_SIMULATOR):
        lines += [f"\t.globl\t{name}", f"\t.hidden\t{name}", f"{name}:"]
    return "\n".join([*lines, f"\t.zero\t{DYNAMIC_BYTES}", ""])
