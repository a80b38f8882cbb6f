"""Building: finding the toolkit and choosing architectures, and the sentences about them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from build_tools import targets, toolkit  # noqa: E402
from build_tools.targets import Targets  # noqa: E402

import fakes  # noqa: E402
from compilers import (  # noqa: E402
    SUPPORTED,
    fake_toolkit,
    sentence,
    write_script,
)

# ---- the toolkit ----


def places(environ, search=()):
    return [(origin, str(path)) for origin, path in toolkit.nvcc_places(environ, search)]


def test_toolkit_order_is_cuda_home_then_path_then_wheels(tmp_path):
    for name in ("home", "path", "site/nvidia/cu13"):
        fake_toolkit(tmp_path / name)
    environ = {"CUDA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path/bin")}
    search = [str(tmp_path / "site")]
    assert toolkit.find_toolkit(environ, search).nvcc == str(tmp_path / "home/bin/nvcc")
    del environ["CUDA_HOME"]
    assert toolkit.find_toolkit(environ, search).nvcc == str(tmp_path / "path/bin/nvcc")
    environ["PATH"] = ""
    found = toolkit.find_toolkit(environ, search)
    assert found.nvcc == str(tmp_path / "site/nvidia/cu13/bin/nvcc")
    assert found.version == "13.0.88"
    assert found.include == str(tmp_path / "site/nvidia/cu13/include")


def test_an_old_toolkit_is_passed_over_and_named(tmp_path, capsys):
    fake_toolkit(tmp_path / "home", version="12.4.131")
    fake_toolkit(tmp_path / "site/nvidia/cu13")
    environ = {"CUDA_HOME": str(tmp_path / "home"), "PATH": ""}
    assert toolkit.find_toolkit(environ, [str(tmp_path / "site")]).version == "13.0.88"
    assert "home/bin/nvcc (from CUDA_HOME) is 12.4.131" in capsys.readouterr().out


@pytest.mark.parametrize("newer", ["13.0.0", "13.2.51", "14.0.1"])
def test_a_newer_toolkit_serves(tmp_path, newer):
    fake_toolkit(tmp_path, version=newer)
    assert toolkit.find_toolkit({"CUDA_HOME": str(tmp_path)}, []).version == newer


def test_only_an_old_toolkit_ends_in_what_to_install(tmp_path):
    fake_toolkit(tmp_path, version="12.9.86")
    with pytest.raises(SystemExit) as raised:
        toolkit.find_toolkit({"CUDA_HOME": str(tmp_path), "PATH": ""}, [])
    text = sentence(raised)
    assert "is 12.9.86" in text and str(tmp_path) in text
    assert "pip install 'nvidia-cuda-nvcc==13.0.*'" in text


def test_no_toolkit_ends_in_what_to_install(tmp_path):
    with pytest.raises(SystemExit) as raised:
        toolkit.find_toolkit({"PATH": ""}, [str(tmp_path)])
    text = sentence(raised)
    assert "no nvcc in CUDA_HOME, on PATH or among the wheels" in text
    for wheel in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime"):
        assert f"'{wheel}==13.0.*'" in text


def test_a_toolkit_without_compiler_headers_or_life_is_named(tmp_path):
    fake_toolkit(tmp_path / "bare", headers=False)
    write_script(tmp_path / "dead/nvcc", "exit 1")
    environ = {"CUDA_HOME": str(tmp_path / "empty"), "PATH": str(tmp_path / "dead")}
    (tmp_path / "site/nvidia").mkdir(parents=True)
    (tmp_path / "site/nvidia/cu13").symlink_to(tmp_path / "bare")
    with pytest.raises(SystemExit) as raised:
        toolkit.find_toolkit(environ, [str(tmp_path / "site")])
    text = sentence(raised)
    assert "CUDA_HOME has no" in text
    assert "(from PATH) does not run" in text
    assert "has no cuda.h and cuda_fp16.h beside it" in text


# ---- architectures ----


def test_architectures_are_read_from_nvcc_itself(tmp_path):
    nvcc = fake_toolkit(tmp_path)
    assert targets.supported_architectures(str(nvcc)) == SUPPORTED


def no_gpu():
    return []


def never():
    raise AssertionError("whoever says what to build for is not asked what is there")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("all", ["75", "80", "86", "89", "90", "90a", "100", "120"]),
        ("90a", ["90a"]),
        ("90a,80", ["80", "90a"]),
        ("100 75;75", ["75", "100"]),
        ("sm_90a,compute_80", ["80", "90a"]),
    ],
)
def test_chosen_architectures(wanted, chosen):
    assert targets.named(wanted, SUPPORTED) == chosen
    built, line = targets.chosen_targets(wanted, SUPPORTED, never)
    assert sorted([*built.machine, *built.on_request]) == sorted(chosen)
    assert line.startswith("building for compute capability ")
    assert "\n" not in line


@pytest.mark.parametrize("wanted", ["70", "90b", "native", "75,abc"])
def test_an_unsupported_architecture_lists_those_there_are(wanted):
    with pytest.raises(SystemExit) as raised:
        targets.chosen_targets(wanted, SUPPORTED, never)
    text = sentence(raised)
    assert wanted.split(",")[-1] in text and ",".join(SUPPORTED) in text


def test_ptx_reaches_every_gpu_that_machine_code_does_not():
    # 10.x is followed by 12.x, so 11.x takes the PTX of 10.0; whatever is newer takes 12.0's.
    plain = ("75", "80", "86", "89", "90", "100", "120")
    assert targets.of_list(targets.ALL) == Targets(plain, ("100", "120"), ("90a",))
    assert targets.of_list(["80", "90a"]) == Targets(("80", "90a"), ("80",))
    assert targets.of_list(["75", "90"]) == Targets(("75", "90"), ("75", "90"))
    assert targets.of_list(["90a"]) == Targets(("90a",))


@pytest.mark.parametrize("wanted", [None, "", " "])
def test_without_a_gpu_ptx_alone_is_built_and_one_line_says_so(wanted):
    built, line = targets.chosen_targets(wanted, SUPPORTED, no_gpu)
    assert (built.machine, built.ptx) == ((), ("75",))
    for words in ("no GPU here", "PTX of 7.5", "GPUKERN_ARCHS=all", "GPUKERN_ARCHS=90a"):
        assert words in line
    assert "\n" not in line


def test_a_gpu_that_is_there_is_built_for():
    built, line = targets.chosen_targets(None, SUPPORTED, lambda: ["86", "90"])
    assert built == Targets(("86", "90"), ("90",), ("90a",))
    assert "this machine's GPU, compute capability 8.6 and 9.0 (" in line
    assert "GPUKERN_ARCHS=all" in line


def test_a_gpu_that_this_nvcc_does_not_know_gets_ptx():
    built, line = targets.chosen_targets(None, SUPPORTED, lambda: ["130"])
    assert (built.machine, built.ptx) == ((), ("75",))
    assert "this nvcc makes no machine code for 13.0" in line and "PTX of 7.5" in line
    built, line = targets.chosen_targets(None, SUPPORTED, lambda: ["80", "130"])
    assert (built.machine, built.ptx) == (("80",), ("75", "80"))
    assert "capability 8.0; this nvcc makes no machine code for 13.0" in line


def test_what_a_source_asks_for_decides_what_it_is_compiled_for():
    default, _ = targets.chosen_targets(None, SUPPORTED, no_gpu)
    assert default.for_source([]) == Targets((), ("75",))
    assert default.for_source({"90a"}) == Targets(("90a",), ("75",))
    assert default.for_source({"80", "75"}) == Targets((), ("75", "80"))
    every = targets.of_list(targets.ALL)
    assert "90a" not in every.for_source({"80"}).machine
    assert every.for_source({"90a"}).machine == ("75", "80", "86", "89", "90a", "100", "120")
    assert targets.of_list(["90a"]).for_source([]).machine == ("90a",)


def test_what_a_source_asks_for_is_found_in_its_headers_too(tmp_path):
    folder = tmp_path / "cuda"
    for name, text in {
        "matmul/wgmma.cu": '#include "device.cuh"\n#include "hopper.cuh"\n',
        "matmul/mma.cu": '#include "near.cuh"\n#if __CUDA_ARCH__ >= 800\n',
        "matmul/near.cuh": '#  include "device.cuh"\n#if __CUDA_ARCH__ > 860\n',
        "plain.cu": '#include "device.cuh"\n#include <cuda_fp16.h>\n#include "gone.cuh"\n',
        "hopper.cuh": '#include "hopper.cuh"\n#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n',
        "device.cuh": "// __CUDA_ARCH_FEAT_SM90_ALL is\n/* __CUDA_ARCH__ >= 900 */\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    asked = {name: targets.requests(folder / name, folder) for name in ("plain.cu", "hopper.cuh")}
    assert asked == {"plain.cu": set(), "hopper.cuh": {"90a"}}
    assert targets.requests(folder / "matmul/wgmma.cu", folder) == {"90a"}
    assert targets.requests(folder / "matmul/mma.cu", folder) == {"80", "86"}


def test_the_gpus_of_this_machine_are_the_drivers(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("the fake driver needs gcc")
    library = fakes.compiled(tmp_path) / "libcuda.so.1"
    code = "from build_tools.targets import installed_gpus; print(*installed_gpus())"

    def found(**settings):
        environ = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), **settings}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert found() == ["90"]
    assert found(FAKE_DEVICES="2", FAKE_CAPABILITY="121") == ["121"]
    assert found(FAKE_DEVICES="0") == found(FAKE_INIT="100") == []
    library.write_bytes(b"no library")
    assert found() == []
