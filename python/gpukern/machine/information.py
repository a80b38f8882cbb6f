"""What ``gpukern info`` and ``gpukern doctor`` print."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from gpukern.machine.checks.finding import Finding
from gpukern.machine.devices import Device, device_info
from gpukern.machine.install import find_fault
from gpukern.machine.inventory import cuda_version, versions
from gpukern.machine.libraries import nvrtc_report
from gpukern.machine.rehearsal import find_crash
from gpukern.machine.tables import find_tables

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"ok": "green", "note": "yellow", "broken": "bold red"}
_LIMITS = (
    "MULTIPROCESSOR_COUNT",
    "WARP_SIZE",
    "MAX_THREADS_PER_BLOCK",
    "MAX_THREADS_PER_MULTIPROCESSOR",
    "MAX_SHARED_MEMORY_PER_BLOCK",
    "MAX_REGISTERS_PER_BLOCK",
    "L2_CACHE_SIZE",
)


def _pairs(title: str, pairs: Iterable[tuple[str, str]]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, escape(value))
    return table


def _driver() -> Iterator[tuple[str, str]]:
    from gpukern import _core

    report = _core.driver_report()
    yield "library", report["library"] or "not found"
    if report["version"]:
        yield "supports", f"CUDA {cuda_version(report['version'])}"
    if report["status"]:
        yield "status", report["status"]
    if report["problem"]:
        yield "problem", report["problem"]


def _cublas() -> Iterator[tuple[str, str]]:
    from gpukern import _core

    report = _core.cublas_report()
    yield "library", report["library"] or "not found"
    if report["version"]:
        yield "version", str(report["version"])
    if report["problem"]:
        yield "problem", report["problem"]


def _nvrtc() -> Iterator[tuple[str, str]]:
    from gpukern import _core

    report = nvrtc_report(_core.driver_report()["version"])
    yield "library", report["library"] or "not found"
    if report["version"]:
        yield "version", cuda_version(report["version"])
    if report["problem"]:
        yield "problem", report["problem"]


def _device(device: Device) -> Iterator[tuple[str, str]]:
    yield from device.summary()
    if not device.simulated:
        yield "matmul by", "; ".join(find_tables(device.name)) or "a rule: see gpukern tune"
    for name in _LIMITS:
        if name in device.attributes:
            yield name, str(device.attributes[name])


def _versions(missing: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield from versions().items()
    for name, install in missing:
        yield name, f"not installed: {install}"


def _build() -> Iterator[tuple[str, str]]:
    from gpukern import _core

    build = _core.build_report()
    yield "built with", f"nvcc {build['nvcc']}, {build['compiler']}"
    for what, key in (("machine code for", "machine_code"), ("PTX of", "ptx")):
        if build[key]:
            yield what, f"compute capability {', '.join(map(_dotted, build[key]))}"


def _known(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The lines, up to one that says why there are no more."""
    try:
        yield from pairs
    except (RuntimeError, ValueError) as error:
        yield "not known", str(error)


def _devices() -> Iterator["RenderableType"]:
    try:
        found = device_info()
    except (RuntimeError, ValueError) as error:
        yield _pairs("devices", [("not known", str(error))])
        return
    for device in found:
        yield _pairs(f"device {device.ordinal}: {escape(device.name)}", _device(device))
    yield "all attributes: python -c 'import gpukern; print(gpukern.device_info())'\n"


def _dotted(architecture: str) -> str:
    """ "90a" as "9.0a"."""
    digits = architecture.rstrip("af")
    return f"{digits[:-1]}.{digits[-1:]}{architecture[len(digits) :]}"


def renderables(missing: Iterable[tuple[str, str]] = ()) -> Iterator["RenderableType"]:
    """The blocks of ``gpukern info``; ``missing`` names what is not here, and what installs it."""
    fault = find_fault() or find_crash()
    if fault:
        yield _pairs(fault.subject, [("broken", fault.text), ("cure", fault.cure)])
    else:
        yield from _devices()
        yield _pairs("driver", _known(_driver()))
        yield _pairs("cuBLAS", _known(_cublas()))
        yield _pairs("NVRTC", _known(_nvrtc()))
        yield _pairs("gpukern", _known(_build()))
    yield _pairs("versions", _versions(missing))


def findings_table(findings: Sequence[Finding]) -> Table:
    """A line for each finding, with its cure under it."""
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = escape(finding.text)
        if finding.cure:
            text += f"\n[dim]cure:[/dim] {escape(finding.cure)}"
        style = _STYLES[finding.level]
        table.add_row(f"[{style}]{finding.level}[/{style}]", escape(finding.subject), text)
    return table
