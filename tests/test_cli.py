"""The command line, what it prints, and every check of the doctor on faked evidence."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gpukern
from gpukern import _core
from gpukern.bench.contenders.registry import PEERS, Peer
from gpukern.bench.model.contender import Contender
from gpukern.cli import main
from gpukern.machine import doctor, evidence, inventory, libraries
from gpukern.machine.checks import driver as driver_checks
from gpukern.machine.checks.finding import Finding
from gpukern.machine.devices import Device
from gpukern.machine.evidence import Evidence, Outcome
from gpukern.text import units


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "140"}, prog_name="gpukern")


# ---- the doctor ----------------------------------------------------------------------------------

LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
REAL = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"


def device(**changes: Any) -> Device:
    fields: dict[str, Any] = {
        "ordinal": 0,
        "name": "GPU A",
        "uuid": "GPU-0",
        "capability": 90,
        "memory_total": 80 * 2**30,
        "memory_free": 79 * 2**30,
        "attributes": {"COMPUTE_MODE": 0, "MULTIPROCESSOR_COUNT": 132},
    }
    return Device(**{**fields, **changes})


def driver(**changes: Any) -> dict[str, Any]:
    fields = {
        "library": LIBRARY,
        "version": 13000,
        "status": "CUDA_SUCCESS",
        "devices": 1,
        "problem": None,
    }
    return {**fields, **changes}


WELL = Evidence(
    nodes={"/dev/nvidia0": True, "/dev/nvidiactl": True, "/dev/nvidia-uvm": True},
    pci_gpus=1,
    kernel_module="580.65.06",
    libcudas=(REAL,),
    driver=driver(),
    cublas={"library": "/site-packages/nvidia/cu13/lib/libcublas.so.13", "version": 130000},
    devices=(device(),),
    backend="cuda",
    cublas_run=Outcome(),
)
NO_GPU = Evidence(driver=driver(library=None, version=None, status=None, devices=0, problem="-"))
DEAD = replace(WELL, backend="sim", devices=(), cublas={}, cublas_run=None)


def failing(status: str) -> Evidence:
    return replace(DEAD, driver=driver(status=status, devices=0, problem="did not start"))


def without_driver(**changes: Any) -> Evidence:
    missing = driver(library=None, version=None, status=None, devices=0, problem="not found")
    return replace(DEAD, **{"driver": missing, "libcudas": (), **changes})


FAULTS = {
    "another system": (replace(NO_GPU, system="win32"), "win32", "WSL"),
    "old NumPy": (replace(WELL, numpy="1.26.4"), "1.26.4", "numpy>=2.0"),
    "no hardware": (NO_GPU, "no NVIDIA GPU", "simulator works"),
    "no hardware in a container": (replace(NO_GPU, container=True), "no NVIDIA GPU", "--gpus"),
    "container without --gpus": (
        without_driver(container=True, kernel_module=None, nodes={}),
        "started without the GPU",
        "--gpus all",
    ),
    "container without device files": (
        without_driver(container=True, nodes={}),
        "started without the GPU",
        "--gpus all",
    ),
    "nouveau": (without_driver(kernel_module=None, nodes={}, nouveau=True), "nouveau", "reboot"),
    "module not loaded": (
        without_driver(kernel_module=None, nodes={}),
        "kernel module is not loaded",
        "modprobe nvidia",
    ),
    "device file forbidden": (
        replace(failing("CUDA_ERROR_NO_DEVICE"), nodes={"/dev/nvidia0": False}),
        "/dev/nvidia0",
        "usermod",
    ),
    "uvm missing": (
        replace(
            failing("CUDA_ERROR_UNKNOWN"), nodes={"/dev/nvidia0": True, "/dev/nvidiactl": True}
        ),
        "nvidia-uvm is missing",
        "nvidia-modprobe",
    ),
    "Linux driver in WSL": (replace(WELL, wsl=True), "WSL uses Windows's", "remove"),
    "WSL 1": (
        replace(WELL, wsl=True, nodes={}, driver=driver(library="/usr/lib/wsl/lib/libcuda.so.1")),
        "/dev/dxg",
        "wsl --update",
    ),
    "no libcuda": (without_driver(), "libcuda.so.1 is not found", "r580"),
    "no libcuda in a container": (without_driver(container=True), "is not found", "--gpus"),
    "no libcuda in WSL": (without_driver(wsl=True), "is not found", "in Windows"),
    "stub": (
        replace(failing("x"), driver=driver(library="/cuda/lib64/stubs/libcuda.so.1", status=None)),
        "stub for linking",
        "LD_LIBRARY_PATH",
    ),
    "two drivers": (
        replace(DEAD, driver=driver(devices=0), libcudas=(REAL, "/usr/compat/libcuda.so.570.1")),
        "there are 2",
        "remove",
    ),
    "library and module differ": (
        replace(failing("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), kernel_module="570.86.15"),
        "580.65.06 and the kernel module of 570.86.15",
        "reboot",
    ),
    "driver too old": (replace(DEAD, driver=driver(version=12040)), "12.4", "r580"),
    "hidden by an empty variable": (
        replace(failing("CUDA_ERROR_NO_DEVICE"), environment={"CUDA_VISIBLE_DEVICES": ""}),
        "is empty",
        "unset",
    ),
    "hidden by -1": (
        replace(failing("CUDA_ERROR_NO_DEVICE"), environment={"CUDA_VISIBLE_DEVICES": "-1"}),
        "hides every GPU",
        "unset",
    ),
    "visible device is a name": (
        replace(failing("CUDA_ERROR_NO_DEVICE"), environment={"CUDA_VISIBLE_DEVICES": "all"}),
        "names no device",
        "nvidia-smi -L",
    ),
    "visible device beyond the last": (
        replace(failing("CUDA_ERROR_NO_DEVICE"), environment={"CUDA_VISIBLE_DEVICES": "3"}),
        "there are 1 GPUs",
        "nvidia-smi -L",
    ),
    "unknown status": (failing("CUDA_ERROR_NEW"), "CUDA_ERROR_NEW", "dmesg"),
    "unexplained problem": (
        replace(DEAD, driver=driver(status=None, devices=0, problem="has no cuLaunchKernel")),
        "has no cuLaunchKernel",
        "r580",
    ),
    "misspelt device choice": (
        replace(WELL, backend=None, backend_problem="?", environment={"GPUKERN_DEVICE": "gpu"}),
        "neither cuda nor sim",
        "unset",
    ),
    "simulator asked for beside a GPU": (
        replace(WELL, backend="sim", environment={"GPUKERN_DEVICE": "sim"}),
        "asks for the simulator",
        "unset",
    ),
    "no device": (replace(DEAD, driver=driver(devices=0)), "lists no device", "nvidia-smi"),
    "too old a GPU": (replace(WELL, devices=(device(capability=61),)), "6.1", "Turing"),
    "exclusive and taken": (
        replace(WELL, devices=(device(attributes={"COMPUTE_MODE": 3}),), kernel=Outcome("busy")),
        "exclusive",
        "nvidia-smi -c DEFAULT",
    ),
    "prohibited": (
        replace(WELL, devices=(device(attributes={"COMPUTE_MODE": 2}),)),
        "prohibited",
        "nvidia-smi -c DEFAULT",
    ),
    "memory full": (
        replace(WELL, devices=(device(memory_free=2**20),)),
        "1.00 MiB of 80.0 GiB",
        "nvidia-smi",
    ),
    "address space limited": (
        replace(WELL, limit=2**32, kernel=Outcome("CudaError: out of memory")),
        "4.00 GiB",
        "ulimit",
    ),
    "kernel fails": (replace(WELL, kernel=Outcome("CudaError: x")), "CudaError: x", "Xid"),
    "simulator fails": (replace(NO_GPU, kernel=Outcome("OSError: x")), "OSError: x", "install"),
    "cuBLAS fails": (replace(WELL, cublas_run=Outcome("bad")), "bad", "gpukern[cublas]"),
}

NOTES = {
    "stubs on the path": (
        replace(WELL, environment={"LD_LIBRARY_PATH": "/a:/cuda/lib64/stubs"}),
        "stubs",
    ),
    "two drivers, and one works": (
        replace(WELL, libcudas=(REAL, "/usr/compat/libcuda.so.570.1")),
        "there are 2",
    ),
    "some GPUs hidden": (replace(WELL, environment={"CUDA_VISIBLE_DEVICES": "0"}), "hidden"),
    "GPU asked for": (replace(WELL, environment={"GPUKERN_DEVICE": "cuda"}), "without one"),
    "a second GPU is too old": (
        replace(WELL, devices=(device(), device(ordinal=1, capability=61))),
        "6.1",
    ),
    "exclusive": (replace(WELL, devices=(device(attributes={"COMPUTE_MODE": 3}),)), "exclusive"),
    "no cuBLAS": (replace(WELL, cublas={"library": None}, cublas_run=Outcome("?")), "not found"),
    "launches block": (replace(WELL, environment={"CUDA_LAUNCH_BLOCKING": "1"}), "timings"),
    "forks": (replace(WELL, forks=True), "spawn"),
    "kernels of another architecture": (
        replace(WELL, build={"machine_code": [], "ptx": ["75"]}),
        "from PTX of 7.5",
    ),
    "limit without harm": (replace(WELL, limit=2**40), "ulimit"),
}


def cured(findings: list[Finding], level: str) -> str:
    return "\n".join(f"{f.text} -> {f.cure}" for f in findings if f.level == level)


@pytest.mark.parametrize("fault", FAULTS)
def test_doctor_names_each_fault_and_its_cure(fault):
    seen, text, cure = FAULTS[fault]
    findings = doctor.examine(seen)
    lines = [line for line in cured(findings, "broken").splitlines() if text in line]
    assert lines, findings
    assert any(cure in line.split(" -> ")[1] for line in lines)
    assert not doctor.healthy(findings)


@pytest.mark.parametrize("state", NOTES)
def test_doctor_notes_what_is_odd_but_works(state):
    seen, text = NOTES[state]
    findings = doctor.examine(seen)
    assert text in cured(findings, "note")
    assert doctor.healthy(findings), findings


@pytest.mark.parametrize("status", sorted(driver_checks.STATUS_CURES))
def test_doctor_cures_each_status_of_the_driver(status):
    findings = doctor.examine(failing(status))
    text, cure = driver_checks.STATUS_CURES[status]
    assert f"{text} ({status}) -> {cure}" in cured(findings, "broken")


def test_doctor_on_a_machine_where_all_is_well():
    findings = doctor.examine(WELL)
    assert doctor.healthy(findings)
    assert {f.level for f in findings} == {"ok"}
    assert doctor.verdict(WELL, findings) == "gpukern can use the GPU here."


def test_doctor_says_one_thing_about_a_machine_without_a_gpu():
    findings = doctor.examine(NO_GPU)
    assert [f.subject for f in findings if f.level == "broken"] == ["GPU"]
    assert "simulator works" in doctor.verdict(NO_GPU, findings)


@pytest.mark.parametrize(
    ("capability", "machine_code", "ptx", "found", "cure"),
    [
        (90, [], ["75"], "from PTX of 7.5", "GPUKERN_ARCHS=90a"),
        (90, ["75", "86"], ["75", "86"], "from PTX of 8.6", "GPUKERN_ARCHS=90a"),
        (86, ["89", "90a"], ["80", "90"], "from PTX of 8.0", "GPUKERN_ARCHS=86"),
        (121, ["100"], ["100", "120"], "from PTX of 12.0", "GPUKERN_ARCHS=121"),
        (90, ["90a"], [], None, None),
        (89, ["80"], ["75"], None, None),
        (75, ["80"], ["80"], None, None),  # nothing serves: the kernel's own line says so
    ],
)
def test_doctor_says_where_the_driver_compiles(capability, machine_code, ptx, found, cure):
    build = {"machine_code": machine_code, "ptx": ptx}
    seen = replace(WELL, devices=(device(capability=capability),), build=build)
    findings = doctor.examine(seen)
    assert doctor.healthy(findings)
    notes = [f for f in findings if f.subject == "machine code"]
    assert len(notes) == (found is not None)
    for finding in notes:
        assert finding.level == "note"
        assert found in finding.text and cure in finding.cure


def test_doctor_on_working_wsl():
    seen = replace(
        WELL,
        wsl=True,
        pci_gpus=0,
        kernel_module=None,
        nodes={"/dev/dxg": True},
        libcudas=("/usr/lib/wsl/lib/libcuda.so.1",),
        driver=driver(library="/usr/lib/wsl/lib/libcuda.so.1"),
    )
    assert doctor.healthy(doctor.examine(seen))


def test_every_check_is_exercised_here():
    everything = [seen for seen, *_ in FAULTS.values()] + [seen for seen, _ in NOTES.values()]
    everything += [failing(status) for status in driver_checks.STATUS_CURES]
    silent = [
        check.__name__
        for check in doctor.CHECKS
        if not any((found := check(seen)) and found.level != "ok" for seen in everything)
    ]
    assert not silent


def test_doctor_looks_at_this_machine():
    seen = evidence.collect()
    assert seen.backend == _core.backend()
    assert seen.kernel.problem is None
    assert seen.numpy == np.__version__


def test_evidence_of_a_misspelt_device(script):
    code = (
        "from gpukern.machine import evidence, doctor; seen = evidence.collect();"
        "print(doctor.examine(seen))"
    )
    done = script(code, GPUKERN_DEVICE="gpu")
    assert done.returncode == 0, done.stderr
    assert "neither cuda nor sim" in done.stdout


def test_the_command_doctor():
    done = run("doctor")
    usable = _core.backend() == "cuda"
    assert ("gpukern can use the GPU here" in done.output) is usable
    assert done.exit_code == (0 if usable else 1)


@pytest.mark.parametrize("seen", [WELL, NO_GPU])
def test_the_exit_status_of_doctor(seen, monkeypatch):
    monkeypatch.setattr(evidence, "collect", lambda: seen)
    done = run("doctor")
    assert done.exit_code == (0 if seen is WELL else 1)
    assert doctor.verdict(seen, doctor.examine(seen)) in done.output


# ---- info ----------------------------------------------------------------------------------------


def test_info_names_devices_libraries_and_versions():
    done = run("info")
    assert done.exit_code == 0, done.output
    for text in (
        _core.devices()[0]["name"],
        "driver",
        "cuBLAS",
        np.__version__,
        "compute capability",
    ):
        assert text in done.output


def test_version():
    assert run("--version").output.strip() == f"gpukern, version {version('gpukern')}"
    assert gpukern.__version__ == version("gpukern")


def test_device_info_has_every_attribute_and_what_follows():
    found = gpukern.device_info()
    assert [d.ordinal for d in found] == list(range(len(found)))
    for one, raw in zip(found, _core.devices(), strict=True):
        assert one.attributes == raw["attributes"]
        assert all(name in repr(found) for name in raw["attributes"])


def test_derived_figures():
    attributes = {
        "MULTIPROCESSOR_COUNT": 132,
        "CLOCK_RATE": 1_980_000,
        "MEMORY_CLOCK_RATE": 3_201_000,
        "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    }
    one = device(attributes=attributes)
    assert one.cores == 16896
    assert one.memory_bandwidth == pytest.approx(4.917e12, rel=1e-3)
    assert one.peak_float32 == pytest.approx(66.9e12, rel=1e-3)
    assert "4917 GB/s" in str(one)


def test_derived_figures_that_cannot_be_known():
    one = device(capability=999, attributes={"MEMORY_CLOCK_RATE": 0, "MULTIPROCESSOR_COUNT": 4})
    assert one.cores is None
    assert one.memory_bandwidth is None
    assert one.peak_float32 is None
    assert "None" not in str(one)


def test_variants_are_named_by_dtype_and_hide_what_is_internal():
    everything = gpukern.variants()
    assert {"add", "scale_add", "sum", "argmax", "dot", "matmul"} <= {v.op for v in everything}
    assert all(callable(getattr(gpukern, v.op)) for v in everything), "operations that one may call"
    assert not any(v.dtype.startswith("bits") for v in everything)
    names = [v.variant for v in gpukern.variants("transpose", np.dtype("int32"))]
    assert names == ["naive", "tiled", "tiled_padded", "vectorized", "vectorized_wide"]
    assert gpukern.variants("add", np.float32) == gpukern.variants("add", "float32")
    assert all(v.dtype == "bfloat16" for v in gpukern.variants(dtype="bfloat16"))


def test_variants_print_as_a_table():
    lines = repr(gpukern.variants("add", "float32")).splitlines()
    assert lines[0].split() == ["op", "variant", "dtype", "runs", "note"]
    assert len(lines) == 1 + len(gpukern.variants("add", "float32"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("cube_root",), "unknown operation 'cube_root'; there are add, subtract, multiply"),
        (("add", "complex64"), "unknown dtype 'complex64'; there are float32"),
        ((None, "nonsense"), "unknown dtype 'nonsense'; there are float32"),
    ],
)
def test_variants_that_are_not_there(arguments, text):
    with pytest.raises(ValueError, match=text):
        gpukern.variants(*arguments)


def test_cublas_is_looked_for_in_wheels_then_by_the_loader(monkeypatch):
    monkeypatch.setattr(libraries, "_pathfinder", lambda name: f"/wheels/lib{name}.so.13")
    candidates = ["/wheels/libcublas.so.13", "libcublas.so.13", "libcublas.so.12"]
    assert libraries.find_cublas() == candidates
    monkeypatch.setattr(libraries, "_pathfinder", lambda name: None)
    assert libraries.find_cublas() == candidates[1:]


def test_cublas_without_pathfinder(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert libraries.find_cublas() == ["libcublas.so.13", "libcublas.so.12"]


# ---- compare -------------------------------------------------------------------------------------


def plant(monkeypatch: pytest.MonkeyPatch, *functions: Any) -> None:
    def offer(op: str, dtype: str) -> list[Contender]:
        return [Contender("planted", f.__name__, f) for f in functions]

    planted = Peer("planted", "planted", offer, needs_gpu=False)
    monkeypatch.setattr("gpukern.bench.contenders.registry.PEERS", (PEERS[0], planted))


def test_compare_right(tmp_path):
    path = tmp_path / "figures.json"
    done = run(
        *("compare", "add", "matmul", "--sizes", "16,8", "--seed", "5", "--rounds", "1"),
        *("--contenders", "numpy,gpukern", "--json", str(path)),
    )
    assert done.exit_code == 0, done.output
    assert "seed 5" in done.stdout
    assert "8x8" in done.stdout and "16x16" in done.stdout
    assert len(json.loads(path.read_text())["rows"]) > 4


def test_compare_wrong_is_exit_status_1(monkeypatch):
    def off_by_one(a: Any, b: Any) -> Any:
        return a + b + 1

    plant(monkeypatch, off_by_one)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 1
    assert "WRONG" in done.stdout
    assert "off_by_one" in done.stdout
    assert "np.add" in done.stdout


def test_compare_broken_is_no_wrong_result(monkeypatch):
    def raising(a: Any, b: Any) -> Any:
        raise OSError("no such file")

    plant(monkeypatch, raising)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 0
    assert "broken: OSError: no such file" in done.stdout


def test_interrupted_prints_what_is_done(monkeypatch):
    def interrupted(a: Any, b: Any) -> Any:
        raise KeyboardInterrupt

    plant(monkeypatch, interrupted)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 130
    assert "np.add" in done.stdout
    assert "interrupted" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("divide",), "unknown operation 'divide'"),
        (("--dtype", "float8"), "unknown dtype 'float8'"),
        (("matmul", "--dtype", "int8"), "matmul does not take int8"),
        (("--sizes", "12y"), "'12y' is not a size"),
        (("add", "--sizes", "0"), "positive"),
        (("--contenders", "matlab"), "unknown contender 'matlab'"),
        (("--rounds", "0"), "--rounds"),
    ],
)
def test_usage_errors_are_exit_status_2(arguments, text):
    done = run("compare", *arguments)
    assert done.exit_code == 2
    assert text in done.stderr


def test_the_module_is_the_command(script):
    code = (
        "import runpy, sys; sys.argv = ['gpukern', *sys.argv[1:]];"
        "runpy.run_module('gpukern', run_name='__main__')"
    )
    arguments = ("sum", "--sizes", "1000", "--rounds", "1", "--contenders", "gpukern")
    done = script(code, "compare", *arguments)
    assert done.returncode == 0, done.stderr
    assert "compensated" in done.stdout
    # No progress bar where nobody watches, and no escape codes.
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_help_names_every_option():
    text = run("compare", "--help").output
    for option in ("--sizes", "--dtype", "--contenders", "--seed", "--rounds", "--json"):
        assert option in text
    assert all(command in run("--help").output for command in ("info", "doctor", "compare"))


# ---- small things --------------------------------------------------------------------------------


def test_import_is_light(script):
    code = """
import sys, numpy
before = set(sys.modules)
import gpukern
heavy = {"rich", "click", "matplotlib", "ml_dtypes", "importlib.metadata", "dataclasses"}
print(sorted(heavy & (set(sys.modules) - before)))
print(sorted(set(gpukern.__all__) - set(dir(gpukern))))
"""
    assert script(code).stdout.split() == ["[]", "[]"]


def test_every_public_name_is_there():
    for name in gpukern.__all__:
        assert getattr(gpukern, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gpukern.nonsense


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.5, "1.50 s"), (0.0309, "30.9 ms"), (1e-6, "1.00 us"), (2.5e-9, "2.50 ns")],
)
def test_times_for_a_reader(value, text):
    assert units.seconds(value) == text


def test_rates_for_a_reader():
    assert units.size(64 * 2**20) == "64.0 MiB"
    assert units.size(10) == "10 B"
    assert units.bandwidth(47e9, 1) == "47.0 GB/s"
    assert units.throughput(51e12, 1) == "51.0 TFLOP/s"
    assert units.throughput(2e9, 1) == "2.00 GFLOP/s"
    assert inventory.cuda_version(12040) == "12.4"
    assert inventory.cuda_version(None) == "unknown"
