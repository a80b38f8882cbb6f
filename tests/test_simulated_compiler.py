"""How users' kernels are compiled for the simulator: errors, options, what is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import gpukern as gk
from gpukern.kernels import assembly, compiling, host
from gpukern.machine import libraries
from simulated import ON_THE_SIMULATOR
from waiting import join_all

pytestmark = ON_THE_SIMULATOR


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("__global__ void f(float *a) {\n  a[0] = absent;\n}", 2, "'absent' was not declared"),
        ('__global__ void f(int *a) {\n  asm volatile("exit;");\n}', 2, "inline PTX (asm) cannot"),
        (
            "__global__ void f(float *a, cudaTextureObject_t t) {\n *a =\n tex2D<float>(t, 0, 1);}",
            3,
            "textures and surfaces cannot be simulated",
        ),
        ("__global__ void g() {}\n__global__ void f() {\n g<<<1, 1>>>();\n}", 3, "hint: a launch"),
        ("__global__ void f(int *a) {\n a[0] = __shfl_down(a[0], 1);\n}", 2, "__shfl_down_sync"),
        ("__global__ void f(half *a) {}", 1, "hint: #include <cuda_fp16.h> has half"),
        ("\nint main() { cudaMalloc(0, 1); }", 2, "cudaMalloc is for code on the host"),
        (
            "__global__ void f(int *a) {\n int s[5000]; for (int i = 0; i < 5000; i++) s[i] = a[i];"
            " a[0] = s[a[1]];\n}",
            3,
            "a function has 16384 bytes",
        ),
        ('#include "mine.h"', 1, 'options=["-I/its/folder"] says where mine.h is'),
    ],
)
def test_errors_show_the_users_lines(text, line, words):
    with pytest.raises(gk.CompileError) as caught:
        gk.compile(text, name="wrong.cu")
    said = str(caught.value)
    assert said.startswith("compile: wrong.cu does not compile, for ")
    assert f"wrong.cu:{line}: error: " in said
    assert words in said, said
    assert f"\n  {line} | {text.splitlines()[line - 1]}" in said
    assert "^" in said
    assert caught.value.log


def test_tensor_cores_are_refused():
    with pytest.raises(gk.CompileError, match=r"wmma.*cannot be simulated"):
        gk.compile("#include <mma.h>\n__global__ void f() {}")


def test_options_are_nvrtcs(tmp_path):
    (tmp_path / "mine.h").write_text("#define MINE 5\n")
    module = gk.compile(
        '#include "mine.h"\n__global__ void f(int *a) { a[0] = MINE + N; }',
        ["-I", str(tmp_path), "-DN=3", "-use_fast_math", "-arch=sm_90", "--std=c++14"],
    )
    a = np.zeros(1, np.int32)
    module.f(1, 1, a)
    assert a[0] == 8
    (tmp_path / "mine.h").write_text("#define MINE 6\n")
    again = gk.compile(
        '#include "mine.h"\n__global__ void f(int *a) { a[0] = MINE + N; }',
        ["-I", str(tmp_path), "-DN=3"],
    )
    again.f(1, 1, a)
    assert a[0] == 9
    with pytest.raises(gk.CompileError, match="unrecognized option --frobnicate"):
        gk.compile("__global__ void f() {}", ["--frobnicate"])


def test_a_source_from_a_file_and_what_was_compiled_for_a_gpu(tmp_path):
    (tmp_path / "own.h").write_text("__device__ int three() { return 3; }\n")
    (tmp_path / "k.cu").write_text('#include "own.h"\n__global__ void f(int *a) { *a = three(); }')
    a = np.zeros(1, np.int32)
    gk.compile(path=tmp_path / "k.cu").f(1, 1, a)
    assert a[0] == 3
    with pytest.raises(gk.CudaError, match="is compiled for a GPU"):
        gk.compile(b"\x7fELF and so on")


def test_more_shared_memory_than_a_block_has():
    module = gk.compile(
        "__global__ void f(float *a) { __shared__ float s[20000]; s[a[0] > 0] = 1; a[0] = s[1]; }"
    )
    with pytest.raises(gk.CudaError, match=r"declares 80\d\d\d bytes of shared memory"):
        module.f(1, 1, np.zeros(1, np.float32))


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        gk.CudaError, match=r"looked for no-such-compiler\): apt install g\+\+ brings it"
    ):
        gk.compile("__global__ void f() {}")


def test_what_is_declared_and_not_defined():
    with pytest.raises(gk.CompileError, match=r"nowhere\(int\) is declared and nowhere defined"):
        gk.compile("__device__ int nowhere(int);__global__ void f(int *a) { *a = nowhere(1); }")


# what is kept -------------------------------------------------------------------------------------


def test_compilations_are_kept(monkeypatch):
    ran = []
    real = compiling.compile_for_simulator
    monkeypatch.setattr(compiling, "compile_for_simulator", lambda *a: ran.append(a) or real(*a))
    text = "__global__ void kept(float *a) { a[0] = 1; }"
    first = gk.compile(text)
    again = gk.compile(text)
    assert len(ran) == 1
    assert again.kept.signature == first.kept.signature
    gk.compile(text, ["-DN=1"])
    gk.compile(text + " ")
    assert len(ran) == 3


def test_processes_compile_one_source(kept):
    code = (
        "import gpukern as gk, numpy as np\n"
        "m = gk.compile('__global__ void f(int *a) { a[0] += 41; }')\n"
        "a = np.ones(1, np.int32); m.f(1, 1, a); print(a[0])"
    )
    environment = {**os.environ, "GPUKERN_DEVICE": "sim", "XDG_CACHE_HOME": str(kept)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=120)[0] for process in running] == [b"42\n"] * 3


def test_modules_come_and_go_and_threads_share_them():
    text = "__global__ void f(int *a) { __shared__ int s; s = VALUE; __syncthreads(); *a = s; }"
    for value in range(3):
        module = gk.compile(text, [f"-DVALUE={value}"])
        a = np.full(1, -1, np.int32)
        module.f(1, 1, a)
        assert a[0] == value
        del module
    module = gk.compile(text, ["-DVALUE=9"])
    results = []

    def work():
        for _ in range(20):
            a = np.zeros(1, np.int32)
            module.f(3, 32, a)
            results.append(int(a[0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    join_all(*threads)
    assert results == [9] * 80


SIGNATURES = """
struct Pair { float x; double y; };
enum Kind { one, two };
__global__ void plain(const float *x, double *y, unsigned n, bool flag, size_t m, char c) {}
extern "C" __global__ void c_name(void *p, const void *q, long l, long long ll) {}
namespace outer { namespace inner {
    __global__ void __launch_bounds__(128, 2) deep(Pair *all, const Pair one, Kind kind) {}
} }
__global__ void vectors(float4 *v, const uint3 *u, float2 by, char *c, int64_t *l, float **deep,
                        double2 *d, uchar4 *e, ushort2 *f, longlong2 *g, dim3 h, char3 *i) {}
__global__ void spread(const int *const __restrict__ a, volatile float *b, short s, uint8_t t) {}
__global__ void nothing() {}
"""
LISTED = """
module = gk.compile(SIGNATURES)
found = {name: [p.numbers() for p in module[name].parameters] for name in module.kernels}
print(json.dumps(found))
"""


@pytest.mark.skipif(libraries.find_nvrtc(13000) is None, reason="NVRTC is not installed")
def test_both_compilers_tell_the_same_of_signatures(on_fake, kept):
    module = gk.compile(SIGNATURES)
    here = {name: [p.numbers() for p in module[name].parameters] for name in module.kernels}
    done = on_fake(f"SIGNATURES = {SIGNATURES!r}" + LISTED, XDG_CACHE_HOME=str(kept))
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


# what is done on the way --------------------------------------------------------------------------


def test_options_are_translated():
    given = [
        "--include-path=/a",
        "-D",
        "N=2",
        "--define-macro=M",
        "-maxrregcount",
        "32",
        "-lineinfo",
    ]
    assert list(host.translated(given)) == ["-I/a", "-D", "N=2", "-DM"]
    with pytest.raises(ValueError, match="--no-such"):
        list(host.translated(["--no-such"]))


def test_dynamic_shared_memory_is_where_the_simulator_says():
    text = assembly.for_the_simulator(
        "\tleaq\ts@tlsgd(%rip), %rdi\n\tleaq\tt@tlsgd(%rip)\nt:\n", ()
    )
    block = text[text.index("gk_sim_dynamic_block:") :]
    assert re.findall(r"^(\w+):$", block, re.M) == ["gk_sim_dynamic_block", "s"]
    header = (host._HEADERS / "sim.h").read_text()
    assert "GK_SIM_MAX_SHARED = 49152" in header
    assert "GK_SIM_DYNAMIC_BYTES = GK_SIM_MAX_SHARED + 256" in header
    assert assembly.DYNAMIC_BYTES == 49152 + 256
