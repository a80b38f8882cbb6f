"""``gpukern doctor`` and ``info`` on installs that are broken: a table, and no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fakes import NEEDS_FAKE, compiled, search_path
from gpukern import _core
from gpukern.machine import rehearsal

PACKAGE = Path(_core.__file__).parent
# What the command itself is made of.
NEEDED = ("click", "rich", "markdown_it", "mdurl", "pygments")


def before_others(folder: str | None) -> str:
    """A PYTHONPATH on which the folder comes first."""
    return os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))


def gpukern(
    *arguments: str, flags: tuple[str, ...] = (), **changes: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without what this one was told of devices."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("GPUKERN_DEVICE", "CUDA_VISIBLE_DEVICES", "PYTHONPATH")
    }
    if "-S" not in flags:  # with it there is nothing but what the test has planted
        changes["PYTHONPATH"] = before_others(changes.get("PYTHONPATH"))
    return subprocess.run(
        [sys.executable, *flags, "-m", "gpukern", *arguments],
        env={**environment, "COLUMNS": "200", **changes},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def doctor(*words: str, flags: tuple[str, ...] = (), **changes: str) -> str:
    """What the doctor prints: it has to find something broken and to say these words of it."""
    done = gpukern("doctor", flags=flags, **changes)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "broken" in done.stdout and "cure:" in done.stdout
    said = " ".join(done.stdout.split())
    for word in words:
        assert word in said, done.stdout
    told = gpukern("info", flags=flags, **changes)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Traceback" not in told.stdout + told.stderr
    assert "python" in told.stdout
    return said


# ---- the device that is asked for ----------------------------------------------------------------


def test_a_device_that_nobody_knows():
    doctor("'nonsense', which is neither cuda nor sim", "unset it", GPUKERN_DEVICE="nonsense")
    assert "not known" in gpukern("info", GPUKERN_DEVICE="nonsense").stdout


@pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    said = doctor("asks for a GPU, and none can be used", "unset it", GPUKERN_DEVICE="cuda")
    assert "GPUKERN_DEVICE keeps it from its simulator" in said
    assert "not known" in gpukern("info", GPUKERN_DEVICE="cuda").stdout


@pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")
@pytest.mark.parametrize("device", ["", "sim"])
@pytest.mark.parametrize("name", ["THREADS", "MEMORY", "SEED"])
def test_a_setting_of_the_simulator_that_is_none(name, device):
    changes = {f"GPUKERN_SIM_{name}": "many", "GPUKERN_DEVICE": device}
    words = (f"GPUKERN_SIM_{name} is 'many', not a number of 0 or more", "unset it")
    said = doctor(*words, **changes)
    assert said.endswith("and its simulator does not run.")


# ---- the driver ----------------------------------------------------------------------------------


def wrong_architecture(binary: bytes) -> bytes:
    machine = slice(18, 20)  # e_machine of the ELF header
    return binary[: machine.start] + (0xF3).to_bytes(2, "little") + binary[machine.stop :]


UNLOADABLE = {
    "truncated": lambda binary: binary[:100],
    "empty": lambda binary: b"",
    "a text": lambda binary: b"INPUT(libcuda.so.580)\n" * 100,
    "of another architecture": wrong_architecture,
}


@NEEDS_FAKE
@pytest.mark.parametrize("how", UNLOADABLE)
def test_a_driver_library_that_does_not_load(how, fake, tmp_path):
    if how == "of another architecture" and _core.driver_report()["problem"] is None:
        pytest.skip("the loader passes over it, and finds the driver of this machine")
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(UNLOADABLE[how]((fake / "libcuda.so.1").read_bytes()))
    doctor(f"{library} is there and cannot be loaded", LD_LIBRARY_PATH=str(tmp_path))


@NEEDS_FAKE
def test_a_driver_library_that_ends_the_process(fake, tmp_path):
    """The loader maps what is there, and dies of what is not."""
    whole = (fake / "libcuda.so.1").read_bytes()
    (tmp_path / "libcuda.so.1").write_bytes(whole[:8192])
    # The address sanitizer, where the tests run under it, makes an abort of the signal.
    signal = "SIGABRT" if "libasan" in os.environ.get("LD_PRELOAD", "") else "SIGBUS"
    doctor("driver library ends the process", signal, LD_LIBRARY_PATH=str(tmp_path))


@NEEDS_FAKE
def test_a_driver_that_never_answers(fake, monkeypatch, tmp_path):
    monkeypatch.setattr(rehearsal, "_LIMIT", 3)
    monkeypatch.setenv("LD_LIBRARY_PATH", search_path(fake))
    monkeypatch.setenv("FAKE_PAUSE", str(tmp_path / "paused"))
    monkeypatch.delenv("GPUKERN_DEVICE", raising=False)
    fault = rehearsal.find_crash()
    assert fault is not None
    assert (fault.subject, fault.text) == ("driver library", "does not answer within 3 s")


def test_what_can_be_used_ends_no_process():
    assert rehearsal.find_crash() is None


@NEEDS_FAKE
def test_a_driver_library_that_lacks_a_function(tmp_path):
    folder = compiled(tmp_path, "-DcuLaunchKernelEx=absent", "-DcuCtxGetCurrent=absent_too")
    doctor("has no cu", "older driver", "r580", LD_LIBRARY_PATH=search_path(folder))


BROKEN_DRIVERS = {
    "too old": ({"FAKE_VERSION": "11080"}, ("supports CUDA 11.8", "r580")),
    "a stub": ({"FAKE_VERSION_FAILS": "34"}, ("stub",)),
    "no device": ({"FAKE_DEVICES": "0"}, ("lists no device",)),
    "hidden": ({"FAKE_INIT": "100", "CUDA_VISIBLE_DEVICES": ""}, ("is empty, which hides",)),
    "hidden by nonsense": (
        {"FAKE_INIT": "100", "CUDA_VISIBLE_DEVICES": "nonsense"},
        ("'nonsense', which names no device",),
    ),
    "an old GPU": ({"FAKE_CAPABILITY": "70"}, ("7.0",)),
    "launches fail": ({"FAKE_LAUNCH": "719"}, ("CUDA_ERROR_LAUNCH_FAILED",)),
    "kernels do nothing": ({"FAKE_KERNELS": "0"}, ("wrong result",)),
}


@NEEDS_FAKE
@pytest.mark.parametrize("how", BROKEN_DRIVERS)
def test_a_broken_driver(how, fake):
    changes, words = BROKEN_DRIVERS[how]
    doctor(*words, LD_LIBRARY_PATH=search_path(fake), **changes)


@NEEDS_FAKE
def test_a_cublas_that_does_not_load(fake, tmp_path):
    (tmp_path / "libcublas.so.13").write_bytes(b"\x7fELF")
    (tmp_path / "libcublas.so.12").write_bytes(b"\x7fELF")
    # Without the search of cuda-pathfinder, which would find one that is whole.
    hidden = tmp_path / "cuda"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("")
    path = search_path(fake, tmp_path)
    said = "cuBLAS cannot be loaded"
    doctor(said, "gpukern[cublas]", LD_LIBRARY_PATH=path, PYTHONPATH=str(tmp_path))


# ---- NumPy ---------------------------------------------------------------------------------------


def planted(folder: Path, text: str) -> str:
    (folder / "numpy").mkdir()
    (folder / "numpy" / "__init__.py").write_text(text)
    return str(folder)


NUMPYS = {
    "of before": ('__version__ = "1.26.4"', ("1.26.4 is too old", "numpy>=2.0")),
    "broken": ("raise ImportError('libopenblas: no such file')", ("libopenblas", "numpy>=2.0")),
}


@pytest.mark.parametrize("how", NUMPYS)
def test_a_numpy_that_does_not_fit(how, tmp_path, script):
    text, words = NUMPYS[how]
    path = planted(tmp_path, text)
    doctor(*words, PYTHONPATH=path)
    for command in ("compare", "bench"):
        done = gpukern(command, "readme", PYTHONPATH=path)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("Error: NumPy")
    last = script("import gpukern", PYTHONPATH=before_others(path)).stderr.splitlines()[-1]
    assert last.startswith("ImportError: gpukern: NumPy ")
    assert all(word in last for word in (*words, "gpukern doctor"))


def without(folder: Path, *left_out: str) -> str:
    """A folder of what the command needs, but for some; to be used with -S."""
    for name in ("gpukern", *NEEDED, "numpy"):
        spec = None if name in left_out else find_spec(name)
        if spec and spec.submodule_search_locations:
            (folder / name).symlink_to(next(iter(spec.submodule_search_locations)))
    return str(folder)


def test_no_numpy(tmp_path):
    doctor(
        "NumPy is not installed", "numpy>=2.0", flags=("-S",), PYTHONPATH=without(tmp_path, "numpy")
    )


@pytest.mark.parametrize("name", ["click", "rich"])
def test_a_library_of_the_command_is_missing(name, tmp_path):
    done = gpukern("doctor", flags=("-S",), PYTHONPATH=without(tmp_path, name))
    assert done.returncode == 1
    said = f'gpukern: the command needs {name}, which is not here; pip install "{name}"'
    assert done.stderr.splitlines() == [said]


# ---- the extension -------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, to be broken."""
    shutil.copytree(PACKAGE, tmp_path / "gpukern", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "gpukern"


def extension(copy: Path) -> Path:
    (found,) = copy.glob("_core.*.so")
    return found


def test_no_extension(copy, script):
    extension(copy).unlink()
    doctor("gpukern._core is missing", "--force-reinstall", PYTHONPATH=str(copy.parent))
    path = before_others(str(copy.parent))
    last = script("import gpukern", PYTHONPATH=path).stderr.splitlines()[-1]
    assert last.startswith("ImportError: gpukern: extension gpukern._core is missing in ")


def test_an_extension_for_another_python(copy):
    extension(copy).rename(copy / "_core.cpython-99-x86_64-linux-gnu.so")
    doctor("is not for Python 3", "--force-reinstall", PYTHONPATH=str(copy.parent))


def test_an_extension_that_was_copied_in_part(copy):
    whole = extension(copy)
    whole.write_bytes(whole.read_bytes()[:100])
    doctor(whole.name, "cannot be loaded", "--force-reinstall", PYTHONPATH=str(copy.parent))


def test_a_module_that_was_not_copied(copy):
    (copy / "machine" / "inventory.py").unlink()
    done = gpukern("doctor", PYTHONPATH=str(copy.parent))
    assert done.returncode == 1
    assert (
        "needs gpukern.machine.inventory, which is not here; install gpukern again" in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_an_extension_of_another_version(copy):
    metadata = copy.parent / "gpukern-99.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gpukern\nVersion: 99.0\n")
    doctor("and the package of 99.0", "--force-reinstall", PYTHONPATH=str(copy.parent))
