"""The compiled kernels in the extension: PTX a kernel, what is found for which GPU, what is loaded.

The engine's files that load kernels are compiled with planted images and run on the fake driver.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from build_tools import kernels, ptx  # noqa: E402

import fakes  # noqa: E402
from test_simulator import cuda_headers  # noqa: E402

SOURCES = ["modules", "images", "device", "driver", "capture"]
PTX, MACHINE_CODE = 1, 2


# ---- loading -------------------------------------------------------------------------------------


def fatbin(*parts: tuple[int, int]) -> bytes:
    """An image as far as the fake driver reads it: (kind, architecture) and no code."""
    body = b"".join(struct.pack("=HHIQIIII", kind, 257, 32, 0, 0, 0, 0, sm) for kind, sm in parts)
    return struct.pack("=IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def loads(tmp_path):
    """loads(lines of gk_images.h)(capability, operation, ...): the harness's answers."""
    headers, compiler = cuda_headers(), shutil.which("gcc")
    if headers is None or compiler is None:
        pytest.skip("CUDA headers or gcc not installed")

    def compiled(*lines: str):
        (tmp_path / "gk_families.h").write_text("GK_FAMILY(one)\nGK_FAMILY(two)\n")
        (tmp_path / "gk_images.h").write_text("".join(f"{line}\n" for line in lines))
        files = {}
        for family, names in {"one": ["gk_add", "gk_sub"], "two": ["gk_extreme"]}.items():
            of_family = [line for line in lines if f"({family}," in line]
            numbers = [int(line.rstrip(")").split(",")[1]) for line in of_family]
            machine = [n for n, line in zip(numbers, of_family, strict=True) if "MACHINE" in line]
            if machine:
                image = fatbin(*((MACHINE_CODE, n) for n in machine))
                (tmp_path / f"{family}.fatbin").write_bytes(image)
                files[f"gk_machine_{family}"] = tmp_path / f"{family}.fatbin"
            for number in (n for n, line in zip(numbers, of_family, strict=True) if "PTX" in line):
                images = {name: fatbin((PTX, number)) for name in names}
                place = tmp_path / f"{family}{number}.kernels"
                place.write_bytes(ptx.indexed(images))
                files[f"gk_ptx_{number}_{family}"] = place
        (tmp_path / "embedded.S").write_text(kernels.assembly(files))
        sources = [ROOT / f"csrc/device/cuda/{name}.c" for name in SOURCES]
        sources += [ROOT / "csrc/base/error.c", ROOT / "tests/planted/modules.c"]
        flags = ["-std=c17", "-D_GNU_SOURCE=", "-fvisibility=hidden", "-O1", f"-I{tmp_path}"]
        flags += [f"-I{ROOT}/csrc", f"-I{ROOT}/cuda", "-isystem", str(headers)]
        about = [f'-DGK_{name}=""' for name in ("ARCHITECTURES", "MACHINE_CODE_FOR", "PTX_OF")]
        words = [*map(str, sources), "embedded.S", "-o", "harness", "-ldl", "-lpthread"]
        subprocess.run([compiler, *flags, *about, *words], cwd=tmp_path, check=True, timeout=600)
        fakes.compiled(tmp_path)
        return answers

    def answers(capability: int, *operations: str, **settings: int):
        changes = {"LD_LIBRARY_PATH": str(tmp_path), "FAKE_CAPABILITY": str(capability)}
        changes |= {name: str(value) for name, value in settings.items()}
        command = [str(tmp_path / "harness"), str(capability), *operations]
        done = subprocess.run(
            command,
            env=os.environ | changes,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        *said, loaded, unloaded = done.stdout.splitlines()
        assert unloaded.split() == loaded.split() + ["u"] * len(loaded.split())
        return said[::2], [int(number) for number in said[1::2]], loaded.split()

    return compiled


def test_machine_code_is_loaded_once_a_file(loads):
    run = loads("GK_MACHINE_CODE(one, 90, 0)", "GK_MACHINE_CODE(two, 90, 0)", "GK_PTX(one, 90)")
    said, architectures, loaded = run(90, "add", "sub", "add", "max", "min")
    assert said == ["ok"] * 5
    assert architectures == [90] * 5
    assert loaded == ["m90", "m90"]


def test_without_machine_code_one_kernel_at_a_time_is_loaded(loads):
    run = loads("GK_PTX(one, 75)", "GK_PTX(two, 75)")
    assert run(90, "add") == (["ok"], [75], ["p75"])
    said, _, loaded = run(90, "add", "sub", "add", "max", "min")
    assert said == ["ok"] * 5
    assert loaded == ["p75"] * 3, "max and min share theirs"


def test_where_the_driver_refuses_the_machine_code_ptx_is_loaded(loads):
    run = loads("GK_MACHINE_CODE(one, 75, 0)", "GK_PTX(one, 75)")
    assert run(90, "add", "sub") == (["ok"] * 2, [75] * 2, ["p75"] * 2)
    assert run(75, "add", FAKE_MACHINE_CODE=209) == (["ok"], [75], ["p75"])


def test_a_driver_before_r580_takes_ptx_alone(loads):
    run = loads("GK_MACHINE_CODE(one, 75, 0)", "GK_PTX(one, 75)", "GK_MACHINE_CODE(two, 75, 0)")
    assert run(75, "add", FAKE_VERSION=13000)[2] == ["m75"]
    assert run(75, "add", FAKE_VERSION=12000) == (["ok"], [75], ["p75"])
    (sentence,), _, loaded = run(75, "max", FAKE_VERSION=12090)
    assert "older than r580 takes PTX alone" in sentence and "install driver r580" in sentence
    assert loaded == []


def test_any_other_refusal_is_told(loads):
    run = loads("GK_MACHINE_CODE(one, 75, 0)", "GK_PTX(one, 75)")
    said, _, loaded = run(75, "add", FAKE_MACHINE_CODE=2)
    assert "CUDA_ERROR_OUT_OF_MEMORY" in said[0]
    assert loaded == []


def test_where_nothing_serves_the_sentence_says_what_to_build(loads):
    run = loads("GK_MACHINE_CODE(one, 80, 0)", "GK_MACHINE_CODE(two, 90, 1)", "GK_PTX(one, 80)")
    said, architectures, loaded = run(75, "add", "max")
    assert architectures == [0, 0]
    assert loaded == []
    for sentence in said:
        assert "no kernels for compute capability 7.5" in sentence
        assert "GPUKERN_ARCHS=75" in sentence
    assert run(90, "max") == (["ok"], [90], ["m90"])


@pytest.mark.parametrize(
    ("architecture", "version"), [("75", "8.0"), ("90a", "8.0"), ("100", "9.0")]
)
def test_ptx_has_a_version_that_old_drivers_read(architecture, version):
    text = ptx.for_old_drivers("// made\n.version 9.0\n.target sm_75\n", architecture)
    assert text == f"// made\n.version {version}\n.target sm_75\n"


def test_ptx_keeps_no_hint_that_old_drivers_do_not_read():
    hint, load = '\t.pragma "used_bytes_mask 15";\n', "\tld.param.v2.u32 \t{%r1, %r2}, [a];\n"
    header = ".version 9.0\n.target sm_75\n"
    assert ptx.for_old_drivers(header + hint + load, "75") == header.replace("9.0", "8.0") + load
    assert ptx.for_old_drivers(header + hint + load, "100") == header + hint + load


def test_the_newest_ptx_that_serves_is_taken(loads):
    run = loads("GK_PTX(one, 75)", "GK_PTX(one, 100)", "GK_PTX(one, 80)")
    for capability, taken in {75: 75, 79: 75, 80: 80, 90: 80, 100: 100, 121: 100}.items():
        assert run(capability, "sub") == (["ok"], [taken], [f"p{taken}"])


def test_code_for_90a_is_for_90_alone(loads):
    run = loads("GK_MACHINE_CODE(one, 90, 1)", "GK_PTX(one, 75)")
    assert run(90, "add")[1:] == ([90], ["m90"])
    assert run(86, "add")[1:] == ([75], ["p75"])


def test_a_kernel_that_no_image_has(loads):
    said, _, _ = loads("GK_PTX(two, 75)")(75, "gone")
    assert "no kernels for compute capability 7.5" in said[0]


# ---- cutting PTX ---------------------------------------------------------------------------------

MODULE = """//
// Generated by a compiler; { not a brace
//
.version 9.0
.target sm_75
.address_size 64

	// .globl	gk_a
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.func  (.param .b32 r) helper(
	.param .b32 x
)
;
.global .align 4 .b8 table[8] = {1, 2, 3, 4};
.global .align 8 .u64 pointer = generic(table);
.const .align 4 .f32 unused = 0f3F800000;
.shared .align 4 .u32 turn;
.extern .shared .align 16 .b8 dynamic[];
.global .align 1 .b8 text[3] = {37, 100, 0};

.visible .entry gk_a(
	.param .u64 gk_a_param_0
)
.maxntid 256, 1, 1
{
	{ // a scope; }
	ld.global.u64 	%rd1, [pointer];
	}
	ret;
}
	// .globl	gk_b
.visible .entry gk_b()
{
	st.shared.u32 	[turn], %r1;
	call.uni (retval0), helper, (param0);
	ret;

}
.func  (.param .b32 r) helper(
	.param .b32 x
)
{
	mov.u64 	%rd2, text; /* and } here */
	call.uni (retval0), vprintf, (param0, param1);
	ret;
}
.weak .entry gk_c()
{
	mov.u64 	%rd1, dynamic;
	ret;
}
"""


def test_a_module_is_cut_into_its_kernels():
    pieces = ptx.split(MODULE)
    assert list(pieces) == ["gk_a", "gk_b", "gk_c"]
    for piece in pieces.values():
        assert piece.startswith(".version 9.0\n.target sm_75\n.address_size 64\n")
        assert piece.count(".entry") == 1
        assert piece.count("{") == piece.count("}")
        assert "//" not in piece
        assert "unused" not in piece


def test_a_piece_has_what_its_kernel_names_and_that_names():
    pieces = ptx.split(MODULE)
    named = {
        "gk_a": {"table", "pointer"},
        "gk_b": {"turn", "helper", "vprintf", "text"},
        "gk_c": {"dynamic"},
    }
    for kernel, symbols in named.items():
        words = set(ptx._NAME.findall(pieces[kernel]))
        everything = {"table", "pointer", "turn", "helper", "vprintf", "text", "dynamic"}
        assert words & everything == symbols
    assert pieces["gk_b"].count(".func") == 3, "declared and defined"
    assert pieces["gk_a"].index("table[8]") < pieces["gk_a"].index("pointer =")
    assert ".maxntid 256, 1, 1" in pieces["gk_a"]


@pytest.mark.parametrize("end", [".visible .entry gk_d(\n)\n{\n\tret;\n", ".visible .entry gk"])
def test_text_that_breaks_off_ends_the_build(end):
    with pytest.raises(SystemExit, match="does not end where it should"):
        ptx.split(MODULE + end)


def test_the_index_is_sorted_and_aligned():
    images = {"b": b"12345", "a_longer_name": b"1" * 40, "c": b""}
    blob = ptx.indexed(images)
    (count,) = struct.unpack_from("=I", blob)
    entries = [struct.unpack_from("=II", blob, 4 + 8 * i) for i in range(count)]
    names = [blob[name : blob.index(b"\0", name)].decode() for name, _ in entries]
    assert names == sorted(images)
    for name, (_, start) in zip(names, entries, strict=True):
        assert start % ptx.ALIGNMENT == 0
        assert blob[start : start + len(images[name])] == images[name]


def test_pieces_of_real_kernels_assemble(tmp_path):
    """A driver compiles a piece as ptxas does, for a GPU newer than the PTX."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    ptxas = Path(nvcc).resolve().parent / "ptxas"
    if not Path(nvcc).is_file() or not ptxas.is_file():
        pytest.skip("no nvcc and ptxas here")
    # A sanitizer that this process was started under is not nvcc's.
    environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    files = [file for file in kernels.kernel_files() if file.path.startswith("matmul/")]
    for file in files[:2]:
        module = tmp_path / f"{file.identifier}.ptx"
        flags = ["-ptx", "-std=c++17", "-arch=compute_75", "-allow-unsupported-compiler"]
        source = str(ROOT / "cuda" / file.path)
        words = [f"-I{ROOT}/cuda", f"-I{ROOT}/csrc", source, "-o", str(module)]
        subprocess.run([nvcc, *flags, *words], env=environ, check=True, timeout=600)
        pieces = ptx.split(module.read_text())
        assert pieces
        for name, piece in list(pieces.items())[:4]:
            (tmp_path / f"{name}.ptx").write_text(piece)
            command = [str(ptxas), "-arch=sm_90", f"{name}.ptx", "-o", f"{name}.cubin"]
            subprocess.run(command, cwd=tmp_path, env=environ, check=True, timeout=600)
