"""The doctor: every check on faked evidence, and the command on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gpukern import _core
from gpukern.cli.commands import main
from gpukern.machine import doctor, evidence
from gpukern.machine.checks import driver as driver_checks
from gpukern.machine.checks.finding import Finding
from gpukern.machine.devices import Device
from gpukern.machine.evidence import Evidence, Outcome
from gpukern.machine.install import AGAIN, NUMPY_CURE, Fault


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "140"}, prog_name="gpukern")


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
    nvrtc={"library": "/usr/local/cuda/lib64/libnvrtc.so.13", "version": 13000, "problem": None},
    devices=(device(),),
    backend="cuda",
    cublas_run=Outcome(),
)
NO_GPU = Evidence(driver=driver(library=None, version=None, status=None, devices=0, problem="-"))
DEAD = replace(WELL, backend="sim", devices=(), cublas={}, nvrtc={}, cublas_run=None)


def failing(status: str) -> Evidence:
    return replace(DEAD, driver=driver(status=status, devices=0, problem="did not start"))


def without_driver(**changes: Any) -> Evidence:
    missing = driver(library=None, version=None, status=None, devices=0, problem="not found")
    return replace(DEAD, **{"driver": missing, "libcudas": (), **changes})


def without_extension(fault: Fault) -> Evidence:
    return replace(NO_GPU, backend=None, driver={}, install=fault)


FAULTS = {
    "another system": (replace(NO_GPU, system="win32"), "win32", "WSL"),
    "old NumPy": (
        without_extension(Fault("NumPy", "version 1.26.4 is too old", NUMPY_CURE)),
        "1.26.4",
        "numpy>=2.0",
    ),
    "no extension": (
        without_extension(Fault("extension", "gpukern._core is missing", AGAIN)),
        "missing",
        "--force-reinstall",
    ),
    "a simulator that does not open": (
        replace(NO_GPU, backend=None, backend_problem="out of host memory"),
        "out of host memory",
        "--force-reinstall",
    ),
    "a GPU asked for where there is none": (
        replace(
            NO_GPU,
            backend=None,
            backend_problem="no driver",
            environment={"GPUKERN_DEVICE": "cuda"},
        ),
        "none can be used: no driver",
        "unset",
    ),
    "a driver library that does not load": (
        without_driver(libcudas=(REAL,)),
        "is there and cannot be loaded: not found",
        "r580",
    ),
    "cuBLAS that does not load": (
        replace(
            WELL,
            cublas={
                "library": None,
                "problem": "cuBLAS was not found (/x/libcublas.so.13: file too short); x",
            },
        ),
        "/x/libcublas.so.13: file too short",
        "gpukern[cublas]",
    ),
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
    "driver too old": (replace(DEAD, driver=driver(version=11080)), "11.8", "r580"),
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
        replace(DEAD, driver=driver(status=None, devices=0, problem="has no cuLaunchKernelEx")),
        "has no cuLaunchKernelEx",
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
    "NVRTC that does not load": (
        replace(WELL, nvrtc={"library": "/x/libnvrtc.so.13", "problem": "NVRTC: file too short"}),
        "file too short",
        "gpukern[jit]",
    ),
    "cuBLAS fails": (replace(WELL, cublas_run=Outcome("bad")), "bad", "gpukern[cublas]"),
}

NOTES = {
    "a driver that compiles": (replace(WELL, driver=driver(version=12040)), "it compiles each"),
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
    "no NVRTC": (replace(WELL, nvrtc={"library": None}), "all but gpukern.compile works"),
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


@pytest.mark.parametrize(("value", "words"), [("", "is empty"), ("-1", "hides every GPU")])
def test_doctor_notes_a_variable_that_hides_what_is_not_there(value, words):
    findings = doctor.examine(replace(NO_GPU, environment={"CUDA_VISIBLE_DEVICES": value}))
    assert words in cured(findings, "note")
    assert "other GPUs" not in cured(findings, "note")


# ---- what is looked at ----


def test_a_driver_library_that_several_folders_lead_to_is_one(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "first/libcuda.so.1").touch()
    (tmp_path / "second/libcuda.so.1").symlink_to(tmp_path / "first/libcuda.so.1")
    found = evidence._libcudas(f"{tmp_path}/second::{tmp_path}/first:{tmp_path}/none")
    assert found[0] == str(tmp_path / "first/libcuda.so.1")
    assert len([path for path in found if str(tmp_path) in path]) == 1


def test_gpus_are_nvidias_display_controllers(tmp_path, monkeypatch):
    cards = {"gpu": ("0x10de", "0x030200"), "sound": ("0x10de", "0x040300")}
    for name, (vendor, kind) in {**cards, "other": ("0x1002", "0x030000")}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    bus = "/sys/bus/pci/devices"
    monkeypatch.setattr(evidence, "Path", lambda path: Path(path.replace(bus, str(tmp_path))))
    assert evidence._pci_gpus() == 1


# ---- devices -------------------------------------------------------------------------------------


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


def test_no_figure_is_derived_of_the_simulator():
    one = device(attributes={"MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1_980_000}, simulated=True)
    assert one.cores is None
    assert one.peak_float32 is None


def test_derived_figures_that_cannot_be_known():
    one = device(capability=999, attributes={"MEMORY_CLOCK_RATE": 0, "MULTIPROCESSOR_COUNT": 4})
    assert one.cores is None
    assert one.memory_bandwidth is None
    assert one.peak_float32 is None
    assert "None" not in str(one)
