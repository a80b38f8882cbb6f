"""setup.py: finding the toolkit, choosing architectures, doing nothing twice, and its sentences.

The compilers here are scripts that write down that they were called, so the tests need no CUDA.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ["75", "80", "86", "89", "90", "90a", "100", "100a", "120"]


@pytest.fixture(scope="module")
def build():
    """The functions of setup.py; importing it builds nothing."""
    spec = importlib.util.spec_from_file_location("gpukern_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def fake_toolkit(root, version="13.0.88", headers=True):
    """A toolkit whose nvcc answers questions and turns a source into a file of the same bytes."""
    include = root / "include"
    include.mkdir(parents=True, exist_ok=True)
    for name in ("cuda.h", "cuda_fp16.h") if headers else ():
        (include / name).write_text("")
    release = version.rpartition(".")[0]
    listed = ",".join(f"'compute_{name}'" for name in SUPPORTED)
    return write_script(
        root / "bin" / "nvcc",
        f"""case "$*" in
            *--version*) echo "Cuda compilation tools, release {release}, V{version}" ;;
            *--dryrun*) echo '#$ INCLUDES="-I{include}"' ;;
            *--help*) echo "Allowed values: {listed},'sm_75','lto_90'." ;;
            *) {FAKE_COMPILE} ;;
        esac""",
    )


# Copies the last source to what follows -o, and writes a dependency file where one is asked for.
FAKE_COMPILE = """
    if [ "$1" = --version ]; then echo "cc 1.0"; exit; fi
    echo "$@" >> "${FAKE_LOG:-/dev/null}"
    while [ $# -gt 0 ]; do
        case "$1" in
            -MF) report=$2; shift ;;
            -o) output=$2; shift ;;
            *.cu|*.c|*.cpp|*.S) source=$1 ;;
        esac
        shift
    done
    if grep -q '#error' "$source" /dev/null; then echo "$source:1: error: as planted"; exit 1; fi
    cat "$source" > "$output"
    [ -z "$report" ] || echo "$output: $source \\\\
      ${FAKE_HEADER:-} /usr/include/stdio.h" > "$report"
"""


# ---- the toolkit ----


def places(build, environ, search=()):
    return [(origin, str(path)) for origin, path in build.nvcc_places(environ, search)]


def test_toolkit_order_is_cuda_home_then_path_then_wheels(build, tmp_path):
    for name in ("home", "path", "site/nvidia/cu13"):
        fake_toolkit(tmp_path / name)
    environ = {"CUDA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path/bin")}
    search = [str(tmp_path / "site")]
    assert build.find_toolkit(environ, search).nvcc == str(tmp_path / "home/bin/nvcc")
    del environ["CUDA_HOME"]
    assert build.find_toolkit(environ, search).nvcc == str(tmp_path / "path/bin/nvcc")
    environ["PATH"] = ""
    found = build.find_toolkit(environ, search)
    assert found.nvcc == str(tmp_path / "site/nvidia/cu13/bin/nvcc")
    assert found.version == "13.0.88"
    assert found.include == str(tmp_path / "site/nvidia/cu13/include")


def test_an_old_toolkit_is_passed_over_and_named(build, tmp_path, capsys):
    fake_toolkit(tmp_path / "home", version="12.4.131")
    fake_toolkit(tmp_path / "site/nvidia/cu13")
    environ = {"CUDA_HOME": str(tmp_path / "home"), "PATH": ""}
    assert build.find_toolkit(environ, [str(tmp_path / "site")]).version == "13.0.88"
    assert "home/bin/nvcc (from CUDA_HOME) is 12.4.131" in capsys.readouterr().out


def sentence(raised):
    text = str(raised.value)
    assert text.startswith("gpukern: ") and "\n" not in text
    return text


@pytest.mark.parametrize("newer", ["13.0.0", "13.2.51", "14.0.1"])
def test_a_newer_toolkit_serves(build, tmp_path, newer):
    fake_toolkit(tmp_path, version=newer)
    assert build.find_toolkit({"CUDA_HOME": str(tmp_path)}, []).version == newer


def test_only_an_old_toolkit_ends_in_what_to_install(build, tmp_path):
    fake_toolkit(tmp_path, version="12.9.86")
    with pytest.raises(SystemExit) as raised:
        build.find_toolkit({"CUDA_HOME": str(tmp_path), "PATH": ""}, [])
    text = sentence(raised)
    assert "is 12.9.86" in text and str(tmp_path) in text
    assert "pip install 'nvidia-cuda-nvcc==13.0.*'" in text


def test_no_toolkit_ends_in_what_to_install(build, tmp_path):
    with pytest.raises(SystemExit) as raised:
        build.find_toolkit({"PATH": ""}, [str(tmp_path)])
    text = sentence(raised)
    assert "no nvcc in CUDA_HOME, on PATH or among the wheels" in text
    for wheel in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime"):
        assert f"'{wheel}==13.0.*'" in text


def test_a_toolkit_without_compiler_headers_or_life_is_named(build, tmp_path):
    fake_toolkit(tmp_path / "bare", headers=False)
    write_script(tmp_path / "dead/nvcc", "exit 1")
    environ = {"CUDA_HOME": str(tmp_path / "empty"), "PATH": str(tmp_path / "dead")}
    (tmp_path / "site/nvidia").mkdir(parents=True)
    (tmp_path / "site/nvidia/cu13").symlink_to(tmp_path / "bare")
    with pytest.raises(SystemExit) as raised:
        build.find_toolkit(environ, [str(tmp_path / "site")])
    text = sentence(raised)
    assert "CUDA_HOME has no" in text
    assert "(from PATH) does not run" in text
    assert "has no cuda.h and cuda_fp16.h beside it" in text


def test_requirements_pin_every_compiler_wheel_alike(build):
    requirements = (ROOT / "pyproject.toml").read_text().split("[project]")[0]
    for wheel in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime"):
        assert f'"{wheel}==13.0.*;' in requirements
        assert f"'{wheel}==13.0.*'" in build.TOOLKIT_WHEELS


# ---- architectures ----


def test_architectures_are_read_from_nvcc_itself(build, tmp_path):
    nvcc = fake_toolkit(tmp_path)
    assert build.supported_architectures(str(nvcc)) == SUPPORTED


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, ["75", "80", "86", "89", "90", "90a", "100", "120"]),
        (" ", ["75", "80", "86", "89", "90", "90a", "100", "120"]),
        ("90a", ["90a"]),
        ("90a,80", ["80", "90a"]),
        ("100 75;75", ["75", "100"]),
        ("sm_90a,compute_80", ["80", "90a"]),
    ],
)
def test_chosen_architectures(build, wanted, chosen):
    assert build.chosen_architectures(wanted, SUPPORTED) == chosen


@pytest.mark.parametrize("wanted", ["70", "90b", "native", "75,abc"])
def test_an_unsupported_architecture_lists_those_there_are(build, wanted):
    with pytest.raises(SystemExit) as raised:
        build.chosen_architectures(wanted, SUPPORTED)
    text = sentence(raised)
    assert wanted.split(",")[-1] in text and ",".join(SUPPORTED) in text


def codes(build, architectures):
    flags = build.code_flags(architectures)
    assert flags[::2] == ["-gencode"] * len(architectures)
    return [flag.partition("code=")[2] for flag in flags[1::2]]


def test_ptx_reaches_every_gpu_that_machine_code_does_not(build):
    default = codes(build, build.ARCHITECTURES)
    # 10.x is followed by 12.x, so 11.x takes the PTX of 10.0; whatever is newer takes 12.0's.
    assert default[-2:] == ["[sm_100,compute_100]", "[sm_120,compute_120]"]
    assert default[:-2] == ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"]
    assert codes(build, ["80", "90a"]) == ["[sm_80,compute_80]", "sm_90a"]
    assert codes(build, ["75", "90"]) == ["[sm_75,compute_75]", "[sm_90,compute_90]"]
    assert codes(build, ["90a"]) == ["sm_90a"]


def test_an_architecture_that_adds_nothing_is_left_out(build):
    plain, special = "int x;", "#ifdef __CUDA_ARCH_FEAT_SM90_ALL"
    assert build.worthwhile(["90", "90a", "100"], plain) == ["90", "100"]
    assert build.worthwhile(["90", "90a", "100"], special) == ["90", "90a", "100"]
    assert build.worthwhile(["80", "90a"], plain) == ["80", "90a"]


def test_wgmma_architecture_is_named_in_full(build):
    assert build.code_flags(["90a"]) == ["-gencode", "arch=compute_90a,code=sm_90a"]


# ---- nothing twice ----


@pytest.fixture
def bench(build, tmp_path, monkeypatch):
    """A source tree of one file, and a function that makes its step and counts compilations."""
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_HEADER", "one.h")
    for name in ("one.c", "one.h"):
        (tmp_path / name).write_text(f"/* {name} */\n")
        os.utime(tmp_path / name, (1, 1))
    tool = write_script(tmp_path / "cc", FAKE_COMPILE)

    def compile_once(**changes):
        step = {
            "output": Path("made/one.o"),
            "tool": [str(tool)],
            "flags": ["-O2"],
            "source": "one.c",
            "identity": "cc 1.0",
        }
        build.perform(build.Step(**(step | changes)))
        log = tmp_path / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    return compile_once


def edit(path, text):
    path.write_text(text)
    os.utime(path, (2, 2))


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


def test_a_first_failure_ends_the_build(build, bench, tmp_path):
    edit(tmp_path / "one.c", "#error\n")
    tool = [str(tmp_path / "cc")]
    steps = [build.Step(Path(f"{n}.o"), tool, [], "one.c", "cc 1.0") for n in range(50)]
    with pytest.raises(SystemExit):
        build.perform_all(steps, jobs=1)
    assert len((tmp_path / "log").read_text().splitlines()) < 50


def test_reported_inputs_are_the_projects_own(build, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path / "tree")
    report = (
        "made/x.o: csrc/x.c csrc/../cuda/y.h \\\n"
        f" {tmp_path}/tree/cuda/with\\ space.h /usr/include/stdio.h \\\n"
        f" {tmp_path}/generated/rows.h\n"
    )
    assert build.reported_inputs(report, tmp_path / "generated") == [
        "csrc/x.c",
        "cuda/y.h",
        "cuda/with space.h",
        f"{tmp_path}/generated/rows.h",
    ]


# ---- a whole build, with scripts for compilers ----


@pytest.fixture
def project(tmp_path):
    """A small source tree with setup.py, and a function that builds it."""
    tree = tmp_path / "tree"
    for name, text in {
        "csrc/module.c": "module\n",
        "cuda/one.cu": "kernels\n",
        "cuda/two.cu": "kernels\n",
        "cuda/sim/bodies.cpp": "bodies\n",
        "python/gpukern/__init__.py": "",
        "README.md": "",
        "LICENSE": "",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        edit(tree / name, text)
    for name in ("setup.py", "pyproject.toml"):
        (tree / name).write_text((ROOT / name).read_text())
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
            command, cwd=tree, env=environ, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        return done, (tmp_path / "log").read_text().splitlines()

    return run


def test_a_build_and_the_next_one(project, tmp_path):
    done, log = project(GPUKERN_ARCHS="90a")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tree/python/gpukern/_core.abi3.so").exists()
    assert sum("-fatbin" in line for line in log) == 2
    assert sum("-DGK_FAMILY=" in line for line in log) == 2
    assert "-shared" in log[-1] and "cuda" not in log[-1].split("-ldl")[1]
    assert any('-DGK_ARCHITECTURES="90a"' in line for line in log)
    for line in log:
        assert line in done.stdout.replace("'", "")
    done, log = project(GPUKERN_ARCHS="90a")
    assert done.returncode == 0 and len(log) == 1 and "-shared" in log[0]


def test_generated_files_list_every_family(project, tmp_path):
    project(GPUKERN_ARCHS="80")
    made = tmp_path / "tree/build/gpukern/objects-80"
    assert (made / "gk_families.h").read_text() == "GK_FAMILY(one)\nGK_FAMILY(two)\n"
    assert (made / "gk_family_rows.h").read_text().splitlines()[:3] == [
        '#define GK_FAMILY_NAME "one"',
        '#include "one.cu"',
        "#undef GK_FAMILY_NAME",
    ]
    assembly = (made / "fatbins.S").read_text()
    assert '.incbin "build/gpukern/fatbins-80/two.fatbin"' in assembly
    assert ".note.GNU-stack" in assembly


def test_sanitized_objects_are_kept_apart_and_share_the_kernels(project):
    project(GPUKERN_ARCHS="80")
    done, log = project(GPUKERN_ARCHS="80", GPUKERN_SANITIZE="1")
    assert done.returncode == 0
    assert not any(".cu " in line for line in log)
    assert all("-fsanitize=address,undefined" in line for line in log if "module.c" in line)
    _, log = project(GPUKERN_ARCHS="80")
    assert len(log) == 1


def test_a_closed_source_tree_builds_elsewhere(project, tmp_path):
    (tmp_path / "tree/build").mkdir()
    (tmp_path / "tree/build/gpukern").write_text("not a folder")
    done, log = project(GPUKERN_ARCHS="80")
    assert done.returncode == 0, done.stderr
    assert sum("-fatbin" in line for line in log) == 2
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
