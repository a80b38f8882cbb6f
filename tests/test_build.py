"""Building: doing nothing twice, a whole build with scripts for compilers, and its progress."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from build_tools import ptxas, steps  # noqa: E402

from compilers import (  # noqa: E402
    FAKE_COMPILE,
    edit,
    fake_toolkit,
    sentence,
    write_script,
)

# ---- nothing twice ----


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A source tree of one file, and a function that makes its step and counts compilations."""
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_HEADER", "one.h")
    for name in ("one.c", "one.h"):
        (tmp_path / name).write_text(f"/* {name} */\n")
        os.utime(tmp_path / name, (1, 1))
    tool = write_script(tmp_path / "cc", FAKE_COMPILE)

    def compile_once(**changes):
        words = {
            "output": Path("made/one.o"),
            "tool": [str(tool)],
            "flags": ["-O2"],
            "source": "one.c",
            "identity": "cc 1.0",
        }
        steps.perform(steps.Step(**(words | changes)))
        log = tmp_path / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    return compile_once


def test_what_has_not_changed_is_not_compiled_again(bench, tmp_path):
    assert bench() == 1
    assert (tmp_path / "made/one.o").read_text() == "/* one.c */\n"
    assert bench() == 1
    recorded = json.loads((tmp_path / "made/one.o.json").read_text())
    assert set(recorded) == {"", "one.c", "one.h"}


def test_a_touched_file_of_the_same_content_is_not_compiled_again(bench, tmp_path):
    bench()
    (tmp_path / "one.h").touch()
    assert bench() == 1


def test_what_changes_nothing_is_not_part_of_the_key(bench):
    bench()
    assert bench(folders=["-isystem", "/elsewhere"], idle=["--threads", "3"]) == 1


@pytest.mark.parametrize(
    "changes", [{"flags": ["-O3"]}, {"identity": "cc 2.0"}, {"output": Path("made/two.o")}]
)
def test_another_command_is_compiled(bench, changes):
    bench()
    assert bench(**changes) == 2


@pytest.mark.parametrize("name", ["one.c", "one.h"])
def test_a_changed_file_is_compiled(bench, tmp_path, name):
    bench()
    edit(tmp_path / name, "/* changed */\n")
    assert bench() == 2
    assert bench() == 2


def test_a_changed_input_that_no_compiler_reports_is_noticed(bench, tmp_path):
    kernels = tmp_path / "one.fatbin"
    edit(kernels, "1")
    bench(inputs=[kernels])
    assert bench(inputs=[kernels]) == 1
    edit(kernels, "2")
    assert bench(inputs=[kernels]) == 2


@pytest.mark.parametrize("damage", ["one.o", "one.o.json"])
def test_a_lost_output_or_record_is_made_again(bench, tmp_path, damage):
    bench()
    (tmp_path / "made" / damage).unlink()
    assert bench() == 2


@pytest.mark.parametrize("record", ["", "{", "[]", '{"": "x", "gone.h": "y"}'])
def test_a_damaged_record_is_no_record(bench, tmp_path, record):
    bench()
    (tmp_path / "made/one.o.json").write_text(record)
    assert bench() == 2


def test_a_file_edited_during_the_compilation_is_compiled_again(bench, tmp_path):
    (tmp_path / "one.h").write_text("/* saved while the compiler read it */\n")
    os.utime(tmp_path / "one.h", (2**33, 2**33))
    assert bench() == 1
    assert bench() == 2


def test_a_failing_compilation_shows_all_and_leaves_nothing(bench, tmp_path, capsys):
    bench()
    edit(tmp_path / "one.c", "#error\n")
    with pytest.raises(SystemExit) as raised:
        bench()
    assert sentence(raised) == "gpukern: cc failed; its command and its words are above"
    said = capsys.readouterr().out
    assert f"{tmp_path}/cc -O2" in said and "one.c:1: error: as planted" in said
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["one.o", "one.o.json"]
    edit(tmp_path / "one.c", "/* mended */\n")
    assert bench() == 3


def test_an_output_that_a_failure_cuts_short_goes(bench, tmp_path):
    half = 'for word; do :; done; echo half > "$word"; exit 1'
    tool = write_script(tmp_path / "half", f"#!/bin/sh\n{half}\n")
    with pytest.raises(SystemExit):
        bench(tool=[str(tool)])
    assert list((tmp_path / "made").iterdir()) == []


def test_a_first_failure_ends_the_build(bench, tmp_path):
    edit(tmp_path / "one.c", "#error\n")
    tool = [str(tmp_path / "cc")]
    chains = [[steps.Step(Path(f"{n}.o"), tool, [], "one.c", "cc 1.0")] for n in range(50)]
    with pytest.raises(SystemExit):
        steps.perform_all(chains, 1, lambda step, made: None)
    assert len((tmp_path / "log").read_text().splitlines()) < 50


def test_reported_inputs_are_the_projects_own(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "ROOT", tmp_path / "tree")
    report = (
        "made/x.o: csrc/x.c csrc/../cuda/y.h \\\n"
        f" {tmp_path}/tree/cuda/with\\ space.h /usr/include/stdio.h \\\n"
        f" {tmp_path}/generated/rows.h\n"
    )
    assert steps.reported_inputs(report, tmp_path / "generated") == [
        "csrc/x.c",
        "cuda/y.h",
        "cuda/with space.h",
        f"{tmp_path}/generated/rows.h",
    ]


# ---- a whole build, with scripts for compilers ----


# What the fake nvcc turns into itself.
KERNELS = """.version 9.0
.target sm_75
.visible .entry gk_b() { ret; }
.visible .entry gk_a() { ret; }
"""


@pytest.fixture
def project(tmp_path):
    """A small source tree with setup.py, and a function that builds it."""
    tree = tmp_path / "tree"
    for name, text in {
        "csrc/module.c": "module\n",
        "csrc/device/cuda/images.c": "images\n",
        "cuda/matmul/01_naive.cu": KERNELS,
        "cuda/one.cu": KERNELS,
        "cuda/two.cu": KERNELS,
        "cuda/sim/bodies.cpp": "bodies\n",
        "cuda/sim/user.h": "of users' kernels\n",
        "cuda/sim/none_of_ours.cu": "not compiled\n",
        "python/gpukern/__init__.py": "",
        "README.md": "",
        "LICENSE": "",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        edit(tree / name, text)
    for path in [ROOT / "setup.py", ROOT / "pyproject.toml", *(ROOT / "build_tools").glob("*.py")]:
        (tree / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        (tree / path.relative_to(ROOT)).write_text(path.read_text())
    fake_toolkit(tmp_path / "cuda")
    for name in ("gcc", "g++"):
        write_script(tmp_path / "bin" / name, FAKE_COMPILE)
    base = {
        "PATH": f"{tmp_path}/bin:{os.defpath}",
        "CUDA_HOME": f"{tmp_path}/cuda",
        "FAKE_LOG": f"{tmp_path}/log",
        "HOME": str(tmp_path),
    }

    def run(**changes):
        environ = {k: v for k, v in (base | changes).items() if v is not None}
        (tmp_path / "log").write_text("")
        command = [sys.executable, "-W", "ignore", "setup.py", "build_ext", "--inplace"]
        done = subprocess.run(
            command, cwd=tree, env=environ, capture_output=True, text=True, check=False, timeout=600
        )
        assert "Traceback" not in done.stderr
        return done, (tmp_path / "log").read_text().splitlines()

    return run


def test_a_build_and_the_next_one(project, tmp_path):
    done, log = project(GPUKERN_ARCHS="80,90a")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tree/python/gpukern/_core.abi3.so").exists()
    assert (tmp_path / "tree/python/gpukern/kernels/sim/user.h").exists(), "used where it lies"
    for words in ("-arch=compute_80", "-arch=compute_90a", "-arch=sm_80", "-arch=sm_90a"):
        assert sum(words in line for line in log) == 3
    packed = [line for line in log if line.startswith("fatbinary") and "kind=elf" in line]
    assert len(packed) == 3
    assert all(line.count("kind=elf") == 2 and "kind=ptx" not in line for line in packed)
    assert sum("kind=ptx,sm=80" in line for line in log) == 6, "two kernels a file"
    assert not any("kind=ptx,sm=90a" in line for line in log)
    assert sum("-DGK_FAMILY=" in line for line in log) == 3
    assert "-shared" in log[-1] and "cuda" not in log[-1].split("-ldl")[1]
    about = [line for line in log if '-DGK_ARCHITECTURES="80 90a"' in line]
    assert len(about) == 1, "no other object depends on the architectures"
    assert '-DGK_MACHINE_CODE_FOR="80 90a"' in about[0] and '-DGK_PTX_OF="80"' in about[0]
    for line in log:
        assert line.startswith("fatbinary") or line in done.stdout.replace("'", "")
    done, log = project(GPUKERN_ARCHS="80,90a")
    assert done.returncode == 0 and log == []
    assert "gpukern: nothing has changed since the extension was linked" in done.stdout


def test_an_extension_that_was_lost_is_linked_from_what_there_is(project, tmp_path):
    project(GPUKERN_ARCHS="80")
    (tmp_path / "tree/build/gpukern/last/extension").write_text("damaged")
    _, log = project(GPUKERN_ARCHS="80")
    assert len(log) == 1 and "-shared" in log[0]


@pytest.mark.parametrize(
    "changes", [{"CFLAGS": "-O1"}, {"LDFLAGS": "-L."}, {"NVCC_APPEND_FLAGS": "-lineinfo"}]
)
def test_other_flags_are_another_build(project, changes):
    project(GPUKERN_ARCHS="80")
    _, log = project(GPUKERN_ARCHS="80", **changes)
    assert log


def test_requirements_are_what_there_is_to_do(project, tmp_path):
    def requirements(**changes):
        code = "from build_tools import backend; print(*backend.compiling_takes(), sep='\\n')"
        environ = {"PATH": f"{tmp_path}/bin:{os.defpath}", "GPUKERN_ARCHS": "80"} | changes
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command,
            cwd=tmp_path / "tree",
            env=environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        return done.stdout.splitlines()

    if shutil.which("nvcc", path=os.defpath) is None:
        assert requirements() == [
            "numpy>=2.0",
            "nvidia-cuda-nvcc==13.0.*; sys_platform == 'linux'",
            "nvidia-nvvm==13.0.*; sys_platform == 'linux'",
            "nvidia-cuda-crt==13.0.*; sys_platform == 'linux'",
            "nvidia-cuda-runtime==13.0.*; sys_platform == 'linux'",
        ]
    own = {"CUDA_HOME": f"{tmp_path}/cuda"}
    assert requirements(**own) == ["numpy>=2.0"]
    project(GPUKERN_ARCHS="80")
    assert [line for line in requirements(**own) if line] == []
    assert requirements(**own, CC="g++") == ["numpy>=2.0"]
    edit(tmp_path / "tree/csrc/module.c", "another module\n")
    assert requirements(**own) == ["numpy>=2.0"]


def test_another_architecture_compiles_what_it_adds(project):
    project(GPUKERN_ARCHS="80")
    done, log = project(GPUKERN_ARCHS="80,90a")
    assert done.returncode == 0, done.stderr
    compiled = [line for line in log if "-o " in line and "-shared" not in line]
    assert all("90a" in line or "images.c" in line or ".S" in line for line in compiled)
    assert sum(".cu " in line for line in compiled) == 3
    done, log = project(GPUKERN_ARCHS="80")
    assert [line for line in log if "-shared" not in line] == []


def test_one_changed_file_of_kernels_is_one_compilation(project, tmp_path):
    project(GPUKERN_ARCHS="80")
    edit(tmp_path / "tree/cuda/matmul/01_naive.cu", KERNELS.replace("gk_a", "gk_c"))
    _, log = project(GPUKERN_ARCHS="80")
    assert sum(".cu " in line for line in log) == 1


def test_machine_code_for_90a_alone_builds(project, tmp_path):
    done, log = project(GPUKERN_ARCHS="90a")
    assert done.returncode == 0, done.stderr
    assert not any("kind=ptx" in line for line in log)
    header = tmp_path / "tree/build/gpukern/objects/90a/gk_images.h"
    assert header.read_text().splitlines() == [
        "GK_MACHINE_CODE(matmul_01_naive, 90, 1)",
        "GK_MACHINE_CODE(one, 90, 1)",
        "GK_MACHINE_CODE(two, 90, 1)",
    ]


def test_what_only_90a_has_is_built_where_a_file_asks(project, tmp_path):
    (tmp_path / "tree/cuda/two.cuh").write_text("// as asked\n#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n")
    edit(tmp_path / "tree/cuda/two.cu", f'{KERNELS}#include "two.cuh" ;\n')
    libraries = tmp_path / "no driver"
    libraries.mkdir()
    (libraries / "libcuda.so.1").write_text("")
    done, log = project(LD_LIBRARY_PATH=str(libraries))
    assert done.returncode == 0, done.stderr
    assert "gpukern: no GPU here, so building PTX of 7.5 alone" in done.stdout
    machine = [line for line in log if "-arch=sm_" in line]
    assert len(machine) == 1 and "sm_90a" in machine[0] and "two" in machine[0]
    assert sum("-arch=compute_75" in line for line in log) == 3
    about = next(line for line in log if "GK_ARCHITECTURES" in line)
    assert '-DGK_MACHINE_CODE_FOR="" ' in about and '-DGK_ARCHITECTURES="75 90a"' in about


def test_generated_files_list_every_family(project, tmp_path):
    project(GPUKERN_ARCHS="80")
    made = tmp_path / "tree/build/gpukern/objects"
    families = [f"GK_FAMILY({name})" for name in ("matmul_01_naive", "one", "two")]
    assert (made / "gk_families.h").read_text().splitlines() == families
    assert (made / "gk_family_rows.h").read_text().splitlines()[:3] == [
        '#define GK_FAMILY_NAME "matmul_01_naive"',
        '#include "matmul/01_naive.cu"',
        "#undef GK_FAMILY_NAME",
    ]
    assert (made / "80-ptx80/gk_images.h").read_text().splitlines()[2:4] == [
        "GK_MACHINE_CODE(one, 80, 0)",
        "GK_PTX(one, 80)",
    ]
    assembly = (made / "80-ptx80/embedded.S").read_text()
    assert "gk_machine_two:\n" in assembly and "gk_ptx_80_two:\n" in assembly
    assert '.incbin "build/gpukern/kernels/80/matmul_01_naive.kernels"' in assembly
    assert ".note.GNU-stack" in assembly


def test_the_simulator_knows_a_file_by_its_path(project):
    _, log = project(GPUKERN_ARCHS="80")
    bodies = [line for line in log if "bodies.cpp" in line]
    assert sum('-DGK_FAMILY_FILE="matmul/01_naive.cu"' in line for line in bodies) == 1
    assert sum("-DGK_FAMILY=matmul_01_naive " in line for line in bodies) == 1


def test_a_kernel_is_found_by_its_name_in_what_is_embedded(project, tmp_path):
    project(GPUKERN_ARCHS="80")
    blob = (tmp_path / "tree/build/gpukern/kernels/80/one.kernels").read_bytes()
    assert blob.index(b"gk_a\0gk_b\0") > 0
    assert blob.count(b"kind=ptx,sm=80") == 2


def test_sanitized_objects_are_kept_apart_and_share_the_kernels(project):
    project(GPUKERN_ARCHS="80")
    done, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="1")
    assert done.returncode == 0
    assert not any(".cu " in line for line in log)
    assert all("-fsanitize=address,undefined" in line for line in log if "module.c" in line)
    _, log = project(GPUKERN_ARCHS="80")
    assert len(log) == 1 and "-shared" in log[0]


def test_a_closed_source_tree_builds_elsewhere(project, tmp_path):
    (tmp_path / "tree/build").mkdir()
    (tmp_path / "tree/build/gpukern").write_text("not a folder")
    done, log = project(GPUKERN_ARCHS="80")
    assert done.returncode == 0, done.stderr
    assert sum("-arch=compute_80" in line for line in log) == 3
    assert (tmp_path / "tree/build/gpukern").read_text() == "not a folder"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"GPUKERN_ARCHS": "52"}, ["architecture 52", "75,80,86", "GPUKERN_ARCHS"]),
        ({"CC": "no-such-cc"}, ["no C compiler (looked for no-such-cc)", "build-essential"]),
        ({"CXX": "no-such-c++"}, ["no C++ compiler", "build-essential"]),
    ],
)
def test_a_build_that_cannot_start_ends_in_one_sentence(project, changes, words):
    done, log = project(**changes)
    assert done.returncode != 0 and log == []
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gpukern: ")
    for word in words:
        assert word in last


def test_a_build_that_fails_ends_in_one_sentence(project, tmp_path):
    edit(tmp_path / "tree/cuda/two.cu", "#error\n")
    done, _ = project()
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("gpukern: nvcc failed")
    assert "two.cu:1: error: as planted" in done.stdout
    assert not (tmp_path / "tree/python/gpukern/_core.abi3.so").exists()


def test_a_kernel_in_local_memory_is_refused(project, tmp_path):
    spilling = KERNELS.replace("gk_a() { ret", "gk_a() {\n\t.local .align 8 .b8 \tdepot[16];\n ret")
    edit(tmp_path / "tree/cuda/two.cu", spilling)
    done, _ = project(GPUKERN_ARCHS="80")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gpukern: gk_a of build/gpukern/kernels/80/two.ptx keeps a variable in ")


# What ptxas -v writes, made up: a kernel that is right, one that spills, one that is serialized.
SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gk_good' for 'sm_90a'
ptxas info    : Function properties for gk_good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'gk_spilling' for 'sm_90a'
ptxas info    : Function properties for gk_spilling
    24 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
"""
SERIALIZED = (
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized due to insufficient register resources for the wgmma pipeline in the function "
    "'gk_waiting'\n"
)


def test_what_ptxas_says_of_slow_kernels_is_read():
    assert list(ptxas.faults(SAID)) == [
        ptxas.Fault("gk_spilling", "16 bytes spill stores, 24 bytes spill loads", is_spill=True)
    ]
    (waiting,) = ptxas.faults(SERIALIZED)
    assert (waiting.kernel, waiting.is_spill) == ("gk_waiting", False)
    assert waiting.words.startswith("(C7510) Potential Performance Loss: wgmma.mma_async")
    unnamed = SAID + "ptxas info    : (C7508) wgmma instructions are serialized\n"
    assert [fault.kernel for fault in ptxas.faults(unnamed)] == ["gk_spilling", "gk_spilling"]
    assert list(ptxas.faults("ptxas info    : (C7999) of no interest\n")) == []


@pytest.mark.parametrize("code", ["C7508", "C7510", "C7511", "C7514", "C7515"])
def test_serialized_products_end_the_build(code):
    with pytest.raises(SystemExit) as raised:
        ptxas.check(SERIALIZED.replace("C7510", code), "cuda/matmul/x.cu", "90a", [])
    text = sentence(raised)
    assert text.startswith("gpukern: gk_waiting of cuda/matmul/x.cu, compiled for 9.0a, waits for")
    assert f"({code})" in text


def test_only_a_product_must_not_spill():
    with pytest.raises(SystemExit) as raised:
        ptxas.check(SAID, "cuda/matmul/x.cu", "90", ["gk_other"])
    text = sentence(raised)
    assert text.startswith("gpukern: gk_spilling of cuda/matmul/x.cu, compiled for 9.0, keeps")
    assert "16 bytes spill stores, 24 bytes spill loads" in text
    assert "GK_MAY_SPILL(gk_spilling)" in text
    ptxas.check(SAID, "cuda/matmul/x.cu", "90", ["gk_spilling"])
    ptxas.check(SAID, "cuda/matmul/x.cu", "120", [])
    ptxas.check(SAID, "cuda/reduce/x.cu", "90", [])


def test_a_spilling_kernel_ends_the_build(project, tmp_path):
    """What ptxas says comes by way of nvcc, when it makes machine code."""
    edit(tmp_path / "tree/cuda/matmul/01_naive.cu", f'{KERNELS}#include "allowed.cuh" ;\n')
    allowed = tmp_path / "tree/cuda/matmul/allowed.cuh"
    allowed.write_text("// GK_MAY_SPILL(gk_spilling) in a comment says nothing\n")
    (tmp_path / "said").write_text(SAID)
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    says = f'case "$*" in *-Xptxas*-v*) cat {tmp_path}/said ;; esac'
    write_script(nvcc, f"{says}\n{nvcc.read_text()}")
    done, _ = project(GPUKERN_ARCHS="90")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gpukern: gk_spilling of cuda/matmul/01_naive.cu, compiled for 9.0")
    assert not (tmp_path / "tree/build/gpukern/kernels/90/matmul_01_naive.cubin").exists()
    allowed.write_text("GK_MAY_SPILL(gk_spilling)\n")
    done, _ = project(GPUKERN_ARCHS="90")
    assert done.returncode == 0, done.stderr


def test_two_files_of_one_name_in_c_are_refused(project, tmp_path):
    edit(tmp_path / "tree/cuda/matmul_01_naive.cu", KERNELS)
    done, _ = project(GPUKERN_ARCHS="80")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gpukern: cuda/matmul_01_naive.cu and cuda/matmul/01_naive.cu are both ")


def test_a_file_that_makes_no_name_in_c_is_refused(project, tmp_path):
    edit(tmp_path / "tree/cuda/01-first.cu", KERNELS)
    done, _ = project(GPUKERN_ARCHS="80")
    assert "cuda/01-first.cu makes no name in C" in done.stderr.splitlines()[-1]


# ---- progress ------------------------------------------------------------------------------------

WATCHED = """
import pathlib, sys
from build_tools import progress
from build_tools.steps import Step
progress.INTERVAL = -1
step = Step(pathlib.Path("x.o"), [], [], "csrc/x.c", "")
with progress.Progress([[step, step], [step]]) as watched:
    for made in (True, False, True):
        watched.finished(step, made)
    print("hidden" if watched.terminal is None else "shown", file=sys.stderr)
    if len(sys.argv) > 1:
        raise SystemExit(1)
"""


def on_terminal(*arguments):
    """What a process prints on a terminal of its own, with its standard output elsewhere."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-c", WATCHED, *arguments])
    text = b""
    try:
        while more := os.read(terminal, 4096):
            text += more
    except OSError:  # how Linux says that the other end is closed
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return text.decode()


def test_progress_is_one_line_on_the_terminal():
    text = on_terminal()
    line = "\r\x1b[K  gpukern: "
    assert text.count(line) == 3
    assert f"{line}1 of 3 compiled (csrc/x.c) " in text
    assert f"{line}3 of 3 compiled (csrc/x.c) " in text
    assert f"{line}2 of 3 steps made, 0 s " in text
    assert text.count("\n") == 1, "of the word on standard error"


def test_progress_says_that_it_stopped():
    assert "gpukern: stopped, 0 s" in on_terminal("fail")


@pytest.mark.parametrize("term", ["xterm", "dumb", None])
def test_without_a_terminal_there_is_no_progress(term):
    environ = {name: value for name, value in os.environ.items() if name != "TERM"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=ROOT,
        env=environ | ({"TERM": term} if term else {}),
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("", "hidden\n")


def test_each_sanitizer_has_objects_of_its_own(project):
    project(GPUKERN_ARCHS="80")
    done, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="thread")
    assert done.returncode == 0
    assert not any("bodies.cpp" in line for line in log), "the kernels are those of the plain build"
    assert all(
        "-fsanitize=thread" in line for line in log if "module.c" in line or "-shared" in line
    )
    done, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="address")
    assert all("-fsanitize=address,undefined" in line for line in log if "module.c" in line)
    assert not any("bodies.cpp" in line for line in log)
    _, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="kernels")
    bodies = [line for line in log if "bodies.cpp" in line]
    assert bodies and all("-fsanitize=address,signed-integer" in line for line in bodies)


def test_a_sanitizer_that_there_is_none_of_is_named(project):
    done, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="memory")
    assert done.returncode != 0 and log == []
    last = done.stderr.splitlines()[-1]
    assert last.endswith("GPUKERN_SANITIZE is 'memory', not one of 0, 1, address, kernels, thread")
