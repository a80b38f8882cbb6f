"""``gpukern.compile`` with the real NVRTC, on the fake driver: compiled, and not run."""

from __future__ import annotations

import pytest

from fakes import answers
from gpukern.kernels import diagnostics, headers, source
from gpukern.machine import libraries

NVRTC = libraries.find_nvrtc(13000)

COMPILED = """
import pathlib
from gpukern.kernels import cache, compiling
runs = []
real = _core.compile_source
class Counting:
    def __getattr__(self, name):
        return getattr(_core, name)
    def compile_source(self, *arguments):
        runs.append(arguments)
        return real(*arguments)
compiling._core = Counting()
def compiled(text, *arguments, **named):
    before = len(runs)
    module = gk.compile(text, *arguments, **named)
    return module, len(runs) - before
ADD = "__global__ void add(const float *a, float *b, int n) { if (n) b[0] += a[0]; }"
"""


@pytest.fixture
def compiles(right, tmp_path):
    """Run code that asserts, with a folder of its own for what is kept."""
    if NVRTC is None:
        pytest.skip("NVRTC is not installed")
    tmp_path.chmod(0o700)
    return lambda code, **settings: right(
        COMPILED + code, **{"XDG_CACHE_HOME": tmp_path, **settings}
    )


def test_what_kernels_take_is_known(compiles):
    compiles(r'''
module = gk.compile(r"""
#include <stdio.h>
struct Pair { float x; double y; };
enum Kind { one, two };
__global__ void plain(const float *x, double *y, unsigned n, bool flag, size_t m) {}
extern "C" __global__ void c_name(void *p, const void *q) { printf("%p", p); }
namespace outer { namespace inner {
    __global__ void __launch_bounds__(128, 2) deep(Pair *all, const Pair one, Kind kind) {}
} }
template <class T, int N> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by * N; }
#define MAKE(name, type) __global__ void name(type *a) { a[0] = 1; }
MAKE(made, short)
__global__ void vectors(float4 *v, const uint3 *u, float2 by, char *c, int64_t *l, float **deep) {}
#if 0
__global__ void left_out(int *a) {}
#endif
__global__ void // a comment, f(int)
spread(const int *const __restrict__ a, /* int no, */ volatile float *b,
       int c = 3) { b[0] = a[0]; }
__global__ void nothing() {}
""", name="many.cu")
def shows(kernel, *rows):
    found = [(p.text, p.made_of, p.bytes, p.readonly, p.points_to, p.scalar_bytes, p.pointee_bytes)
             for p in kernel.parameters]
    assert found == list(rows), found
from gpukern.kernels.signature import *
shows(module.plain, ("const float *x", POINTER, 8, 1, FLOAT, 4, 4),
      ("double *y", POINTER, 8, 0, FLOAT, 8, 8), ("unsigned n", UNSIGNED, 4, 0, 0, 0, 0),
      ("bool flag", BOOL, 1, 0, 0, 0, 0), ("size_t m", UNSIGNED, 8, 0, 0, 0, 0))
shows(module.c_name, ("void *p", POINTER, 8, 0, ANYTHING, 0, 0),
      ("const void *q", POINTER, 8, 1, ANYTHING, 0, 0))
assert module.c_name.symbol == "c_name"
shows(module["outer::inner::deep"], ("Pair *all", POINTER, 8, 0, BYTES, 16, 16),
      ("const Pair one", BYTES, 16, 0, 0, 0, 0), ("Kind kind", SIGNED, 4, 0, 0, 0, 0))
shows(module["scale<double, 3>"], ("T *x", POINTER, 8, 0, FLOAT, 8, 8),
      ("T by", FLOAT, 8, 0, 0, 0, 0))
shows(module["scale<unsigned char, 2>"], ("T *x", POINTER, 8, 0, CHAR, 1, 1),
      ("T by", CHAR, 1, 0, 0, 0, 0))
shows(module.made, ("argument 1 (short *)", POINTER, 8, 0, SIGNED, 2, 2))
shows(module.vectors, ("float4 *v", POINTER, 8, 0, FLOAT, 4, 16),
      ("const uint3 *u", POINTER, 8, 1, UNSIGNED, 4, 12), ("float2 by", BYTES, 8, 0, 0, 0, 0),
      ("char *c", POINTER, 8, 0, CHAR, 1, 1), ("int64_t *l", POINTER, 8, 0, SIGNED, 8, 8),
      ("float **deep", POINTER, 8, 0, POINTER, 8, 8))
assert [p.alignment for p in module.vectors.parameters[:2]] == [16, 4]
shows(module.spread, ("const int *const __restrict__ a", POINTER, 8, 1, SIGNED, 4, 4),
      ("volatile float *b", POINTER, 8, 0, FLOAT, 4, 4), ("int c", SIGNED, 4, 0, 0, 0, 0))
shows(module.nothing)
assert module["add" if 0 else "nothing"] is module.nothing
for name, words in (("scale", "is a template"), ("left_out", "is no kernel"),
                    ("absent", "has no kernel 'absent'; it has plain, c_name")):
    kind, sentence = failure(lambda: module[name])
    assert kind == "ValueError" and sentence.startswith("compile: ") and words in sentence, sentence
    assert not hasattr(module, name)
assert failure(lambda: module[3])[0] == "TypeError"
''')


def test_headers_that_nvrtc_lacks_and_what_they_define(compiles):
    names = [*headers.IN_MEMORY, "cuda_fp16.h"]
    source_of_all = "".join(f"#include <{name}>\n" for name in names if name != headers.PRELUDE)
    body = (
        "__global__ void f(int64_t *a, uint b, uint8_t c, __half *h, const __half2 *v) { "
        "assert(b < INT_MAX); a[0] = INT64_MAX; double d = M_PI + DBL_MAX + FLT_MAX; "
        "float e = INFINITY + NAN; a[1] = d > e; "
        "h[0] = __float2half(CUDART_PI_F + CUDART_MIN_DENORM_F - CUDART_INF_F + CUDART_2_OVER_PI); "
        'd = CUDART_NAN; printf("%d %g", (int)sizeof(size_t), d); }'
    )
    compiles(f"""
try:
    module = gk.compile({source_of_all + body!r})
    assert [p.scalar_bytes for p in module.f.parameters] == [8, 0, 0, 2, 2]
    assert [p.pointee_bytes for p in module.f.parameters[3:]] == [2, 4]
    assert module.f.parameters[4].points_to == module.f.parameters[3].points_to
except gk.CompileError as error:
    assert "pip install nvidia-cuda-runtime" in str(error), error  # cuda_fp16.h is not here
gk.compile("__global__ void g(uint32_t *a) {{ a[0] = UINT32_MAX; float x = INFINITY * M_PI; }}").g
""")


def test_compilation_is_kept(compiles):
    compiles("""
first, count = compiled(ADD)
assert count == 1
first.add(1, 1, gk.In(a), a.copy(), 3) if 0 else None
again, count = compiled(ADD)
assert count == 0 and again.add.signature == first.add.signature and again.add.spills == 0
assert compiled(ADD + " ")[1] == 1, "another source"
assert compiled(ADD, ["-DN=3"])[1] == 1, "another option"
assert compiled(ADD, name="x.cu")[1] == 1, "another name"
compiling._find_compiler.cache_clear()
assert compiled(ADD)[1] == 0
other = compiling._Nvrtc(compiling._find_compiler().path, "another version", 13000)
compiling._find_compiler = lambda: other
assert compiled(ADD)[1] == 1, "another compiler"
folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "gpukern" / "kernels"
assert folder.stat().st_mode & 0o777 == 0o700
kept = list(folder.glob("??/*"))
assert len(kept) == 5 and all(file.stat().st_mode & 0o077 == 0o044 or True for file in kept)
for file in kept:
    file.write_bytes(file.read_bytes()[:-9])
assert compiled(ADD)[1] == 1, "an entry that was cut short"
assert compiled(ADD)[1] == 0
for file in folder.glob("??/*"):
    file.write_bytes(b"")
assert compiled(ADD)[1] == 1
""")


def test_a_header_that_has_changed_is_compiled_again(compiles, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "first").mkdir()
    compiles(f"""
own = pathlib.Path({str(tmp_path / "own")!r})
(own / "outer.h").write_text('#include "inner.h"\\n')
(own / "inner.h").write_text("#define VALUE 1\\n")
text = '#include "outer.h"\\n__global__ void f(int *a) {{ a[0] = VALUE; }}'
options = ["-I", {str(tmp_path / "first")!r}, f"-I{{own}}"]
assert compiled(text, options)[1] == 1 and compiled(text, options)[1] == 0
(own / "inner.h").write_text("#define VALUE 22\\n")
assert compiled(text, options)[1] == 1 and compiled(text, options)[1] == 0
pathlib.Path({str(tmp_path / "first" / "outer.h")!r}).write_text("#define VALUE 3\\n")
assert compiled(text, options)[1] == 1, "another folder has the header now"
by_macro = text.replace('#include "outer.h"', '#define HEADER "outer.h"\\n#include HEADER')
assert compiled(by_macro, options)[1] == compiled(by_macro, options)[1] == 1
file = own / "kernels.cu"
file.write_text('#include "inner.h"\\n__global__ void g(int *a) {{ a[0] = VALUE; }}')
assert gk.compile(path=file).g.signature == "g(int *a)"
assert gk.compile(path=str(file)).name == str(file)
os.chdir(own)
here = text.replace("outer.h", "here.h")
(own / "here.h").write_text("#define VALUE 4\\n")
assert compiled(here)[1] == 1 and compiled(here)[1] == 0
(own / "here.h").write_text("#define VALUE 55\\n")
assert compiled(here)[1] == 1, "beside the source"
forced = ["-I.", "--pre-include=here.h"]
assert compiled(ADD, forced)[1] == compiled(ADD, forced)[1] == 1
""")


def test_nothing_is_taken_from_a_folder_that_others_write_to(compiles):
    compiles("""
folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "gpukern" / "kernels"
folder.mkdir(parents=True)
folder.chmod(0o777)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert compiled(ADD)[1] == compiled(ADD)[1] == 1
assert len(caught) == 1 and "can be written by others" in str(caught[0].message)
assert not list(folder.iterdir())
""")


def test_where_nothing_can_be_kept_kernels_are_compiled_all_the_same(compiles, tmp_path):
    (tmp_path / "file").write_text("no folder")
    compiles("assert compiled(ADD)[1] == compiled(ADD)[1] == 1", XDG_CACHE_HOME=tmp_path / "file")


def test_what_is_kept_does_not_grow_without_end(compiles):
    compiles("""
cache.MOST_BYTES = 40_000
for number in range(12):
    compiled(ADD, [f"-DN={number}"])
    compiled(ADD, ["-DN=0"])
folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "gpukern" / "kernels"
files = list(folder.glob("??/*"))
assert 1 < len(files) < 12 and sum(file.stat().st_size for file in files) <= 40_000
assert compiled(ADD, ["-DN=0"])[1] == 0, "what is used is kept"
assert compiled(ADD, ["-DN=1"])[1] == 1
""")


def test_many_processes_compile_one_source(compiles):
    compiles("""
import subprocess
code = '''
import gpukern as gk, os
for number in range(4):
    kernel = gk.compile("__global__ void f(int *a) { a[%d] = 1; }" % number).f
    assert kernel.signature == "f(int *a)"
'''
running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
assert [process.wait(300) for process in running] == [0] * 4
folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "gpukern" / "kernels"
assert len(list(folder.glob("??/*"))) == 4 and not list(folder.glob("??/.new*"))
""")


def test_threads_compile_side_by_side(compiles):
    compiles("""
found = {}
def work(number):
    module = gk.compile(f"__global__ void f{number}(int *a, float b) {{ a[0] = {number} + b; }}")
    found[number] = module[f"f{number}"].signature
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == {i: f"f{i}(int *a, float b)" for i in range(8)}
""")


BROKEN = {
    "int x = undefined_name;": ('k.cu:2: error: identifier "undefined_name"', "        ^"),
    "a[0] = __shfl_down(a[1], 2);": ("hint:", "__shfl_down_sync(0xffffffff, ...)"),
    "cudaMalloc(&a, 4);": ("hint:", "cudaMalloc is for code on the host"),
    "half h = 0;": ("hint:", "#include <cuda_fp16.h> has half"),
    "} int main() {": ("hint:", "marked with __device__", "stays out"),
    "a[0] = 1": ('expected a ";"',),
}


@pytest.mark.parametrize("line", BROKEN)
def test_errors_show_the_users_lines(line, compiles):
    text = f"__global__ void f(float *a) {{\n{line}\n}}\n"
    compiles(f"""
kind, sentence = failure(gk.compile, {text!r}, name="k.cu")
assert kind == "CompileError" and sentence.startswith("compile: k.cu does not compile"), sentence
for words in {BROKEN[line]!r}:
    assert words in sentence, sentence
assert "gk_signature" not in sentence and "nv_name_map" not in sentence
shown = [text.strip() for text in sentence.splitlines()]
assert any(text.endswith({"| " + line!r}) for text in shown), sentence
""")


@pytest.mark.parametrize(
    "text, options, words",
    [
        ("#include <absent/mine.h>\n", [], "-I/its/folder"),
        ("#include <vector>\n", [], "for code on the host"),
        ("#include <curand_kernel.h>\n", [], "pip install nvidia-curand"),
        ("", ["-O99x"], "NVRTC does not know"),
        ("", ["-std=c++11"], "needs -std=c++14 or newer"),
        ("", ["-arch=sm_999"], "does not know that GPU"),
        ("__global__ void f(int *a) { a[0] = __any(1); }", [], "__any_sync"),
    ],
)
def test_errors_outside_of_kernels(text, options, words, compiles):
    compiles(f"""
compiling.find_headers = lambda driver: []
kind, sentence = failure(gk.compile, {text!r} + ADD, {options!r})
assert kind == "CompileError" and {words!r} in sentence, sentence
""")


def test_the_error_has_the_whole_log_and_can_be_pickled(compiles):
    compiles("""
import pickle
try:
    gk.compile("\\n".join(f"__global__ void f{i}() {{ wrong{i}(); }}" for i in range(9)))
except gk.CompileError as error:
    assert "for 9 errors" in str(error) and "and 4 more" in str(error) and "wrong8" in error.log
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.log == error.log
assert issubclass(gk.CompileError, gk.CudaError)
assert "#177-D" in gk.compile("__global__ void f() { int unused; }").log
""")


def test_control_c_ends_a_compilation(compiles):
    compiles("""
import signal, time
slow = "".join(f"__global__ void f{i}(double *a) {{ for (int k = 0; k < 100; k++) "
               f"a[k] = sin(a[k]) * pow(a[k + 1], a[k + {i}]) + tgamma(a[k]); }}\\n"
               for i in range(300))
for after in 0.3, 0.6:
    signal.setitimer(signal.ITIMER_REAL, after)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.perf_counter()
    try:
        gk.compile(slow)
    except KeyboardInterrupt:
        took = time.perf_counter() - start
    else:
        raise AssertionError("it was not interrupted")
    assert took < after + 15, took
gk.compile(ADD).add
""")


def test_the_architecture_is_the_users_where_he_says_it(compiles):
    compiles("""
gk.compile(ADD)
assert "-arch=sm_90" in runs[-1][3]
gk.compile(ADD, ["-arch=sm_80"])
assert [option for option in runs[-1][3] if "arch" in option] == ["-arch=sm_80"]
ptx = real(runs[-1][0], "x.cu", ADD, ("-arch=compute_80",), (), ())
assert ptx[0] and b".version" in ptx[1]
class Shown:
    def __str__(self): return ADD
assert gk.compile(Shown()).add.signature == gk.compile(ADD.encode()).add.signature
kind, sentence = failure(gk.compile, ADD + chr(0))
assert kind == "ValueError" and "code 0" in sentence
assert failure(gk.compile, path="/no/such/file.cu")[0] == "FileNotFoundError"
""")


def test_without_a_compiler_it_says_what_to_install(on_fake):
    code = """
from gpukern.machine import libraries
libraries._nvrtc_folders = lambda major: []
libraries._pathfinder = lambda name: None
fails((gk.compile, "__global__ void f() {}"))
report = libraries.nvrtc_report(12080)
print(json.dumps([report["problem"]]))
"""
    [[kind, sentence]], [problem] = answers(on_fake(code))
    assert kind == "CudaError"
    assert 'pip install "gpukern[jit]"' in sentence
    assert 'pip install "gpukern[jit12]"' in problem


def test_the_compiler_is_chosen_by_the_driver(tmp_path, monkeypatch):
    (tmp_path / "cu13/lib").mkdir(parents=True)
    (tmp_path / "cuda_nvrtc/lib").mkdir(parents=True)
    new, old = tmp_path / "cu13/lib/libnvrtc.so.13", tmp_path / "cuda_nvrtc/lib/libnvrtc.so.12"
    old.touch()
    monkeypatch.setattr(libraries, "_wheels", lambda: [tmp_path])
    monkeypatch.setattr(libraries, "_pathfinder", lambda name: str(new))
    folders = libraries._nvrtc_folders
    monkeypatch.setattr(libraries, "_nvrtc_folders", lambda major: list(folders(major))[:2])
    assert libraries.find_nvrtc(13000) == str(old), "the older serves a newer driver"
    new.touch()
    assert libraries.find_nvrtc(13000) == str(new)
    assert libraries.find_nvrtc(12040) == str(old), "and the newer no older driver"
    old.unlink()
    assert libraries.find_nvrtc(12040) is None
    assert libraries.find_nvrtc(13010) == str(new)
    new.touch()
    report = libraries.nvrtc_report(13000)
    assert "cannot be loaded" in report["problem"] and "gpukern[jit]" in report["problem"]


def test_what_a_source_shows():
    written = source.kernels(
        'char s[] = "__global__ void text(int a) {}"; // __global__ void comment() {}\n'
        "struct S { __global__ void member(int a); };\n"
        "namespace { __global__ void hidden(int a[3], void (*f)(int, int)) {} }\n"
        "__global__ __launch_bounds__(64) void bounded(std::pair<int, float> p) {}\n"
        'extern "C" { __global__ void inside(void) {} }\n'
        "__global__ void declared(int *a);\n__global__ void declared(int *a) {}\n"
    )
    assert [(kernel.name, kernel.parameters) for kernel in written] == [
        ("hidden", ("int a[3]", "void (*f)(int, int)")),
        ("bounded", ("std::pair<int, float> p",)),
        ("inside", ()),
        ("declared", ("int *a",)),
    ]
    assert source.includes('#include <a.h>\n # include "b.h"\n/*\n#include <c.h>\n*/') == [
        ("a.h", False),
        ("b.h", True),
    ]
    assert source.includes("#include NAME") is None


def test_spills_are_read_from_the_log():
    log = (
        "ptxas info    : Function properties for _Z1fPf\n"
        "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        "k.cu(1): warning #177-D: something\n"
    )
    assert diagnostics.spills_in(log) == {"_Z1fPf": 12}
    assert diagnostics.warnings_in(log) == "k.cu(1): warning #177-D: something"


def test_variables_that_a_source_shows():
    shown = source.variables("""
__constant__ float table[4][3]; // __constant__ int comment;
__device__ int counter = 3, other;
__device__ __constant__ unsigned short both = 1;
static __device__ float4 *pointer;
namespace outer { namespace { } __constant__ Pair pairs[N + 1]; }
__device__ float function(float x) { __shared__ int inside; return x; }
template <class T> __constant__ T of_template;
__device__ const char text[] = "a;b";
__global__ void kernel(float *x) { static __device__ int local; }
""")
    assert shown == ["table", "counter", "both", "pointer", "outer::pairs", "text"]


USING = """
#define FIRST(x) x[0]
__constant__ float table[4]; // table
namespace deep {{ __device__ int count = 3, *other; }}
__global__ void other(float *x) {{ if (x) {{ x[0] = table[0]; }} deep::count = 1; }}
{between}
template <class T> __global__ void __launch_bounds__(64) scale(T *x, T by) {{ x[0] *= by{used}; }}
"""


@pytest.mark.parametrize(
    ("between", "used", "uses"),
    [
        ("", "", False),
        ("", "/* table */ + tables", False),
        ("", " * table[0]", True),
        ("", " * FIRST(table)", True),
        ("__device__ float of() { return table[0]; }", " * of()", True),
        ("#define T0 table[0]", " * T0", True),
        ("#define OF(x) ta##x", " * OF(ble)[0]", True),
        ("__device__ float *first = table;", " * *first", True),
        ("namespace deep { __global__ void scale(float *x) { x[0] = table[0]; } }", "", True),
        ("template <> __global__ void scale<int>(int *x, int by) { *x = table[0]; }", "", True),
        ("template <class T> __global__ void third(T *x) { x[0] = table[0]; }", "", False),
        ("__global__ void third(float *);", "; third<<<1, 1>>>(x)", True),
    ],
)
def test_which_variables_a_kernel_may_use(between, used, uses):
    text = USING.format(between=between, used=used)
    assert source.may_use(text, "scale<float>", "table") == uses
    assert source.may_use(text, "other", "table") and source.may_use(text, "other", "deep::count")
    if not uses:
        assert not source.may_use(text, "deep::scale<float>", "deep::count")


def test_variables_have_the_dtype_and_the_shape_of_the_source(compiles):
    compiles("""
module = gk.compile('''
struct Pair { int a; double b; };
__constant__ float table_48[4][3];
__device__ float4 vectors_32[2];
__device__ unsigned short one_2;
__device__ Pair pairs_32[2];
namespace deep { __constant__ double inner[1]; }
__global__ void f(float *x) { x[0] = table_48[1][2] + one_2 + vectors_32[0].x + pairs_32[1].a; }
template <class T> __global__ void g(T *x) { x[0] = table_48[0][0]; }
''')
def of(name):
    array = module.symbol(name)
    return array.dtype.name, array.shape
assert of("table_48") == ("float32", (4, 3)) and of("vectors_32") == ("float32", (2, 4))
assert of("one_2") == ("uint16", ()) and of("pairs_32") == ("uint8", (2, 16))
values = np.arange(12, dtype=np.float32).reshape(4, 3)
module.symbol("table_48")[...] = values
assert (module.symbol("table_48").to_host() == values).all()
kind, sentence = failure(lambda: module.symbol("absent"))
assert kind == "ValueError" and "no variable 'absent'; it has table_48, vectors_32" in sentence
assert failure(lambda: module.symbol(3))[0] == "TypeError"
kind, sentence = failure(lambda: module["g<float>"])
assert kind == "ValueError" and "names=['g<float>']" in sentence, sentence
""")


def test_a_template_among_the_names_shares_the_variables(compiles):
    compiles("""
text = '''
__constant__ float table_16[4];
template <class T> __global__ void g(T *x) { x[0] = table_16[0]; }
__global__ void plain(float *x) { x[0] = table_16[1]; }
'''
module = gk.compile(text, names=["g<float>"])
assert module["g<float>"].signature == "g<float>(T *x)"
assert module.symbol("table_16").shape == (4,)
other = gk.compile(text)
other["g<double>"], other.plain
kind, sentence = failure(lambda: other.symbol("table_16"))
assert kind == "ValueError" and "names=['g<double>']" in sentence, sentence
assert failure(lambda: gk.compile(text, names="g<float>"))[0] == "TypeError"
loaded = gk.compile(b"\\x7fELF" + bytes(60))
assert loaded.symbol("user_24").shape == (24,) and loaded.symbol("user_24").dtype == np.uint8
""")


def test_macros_of_short_names_do_not_meet_what_is_added(compiles):
    compiles("""
defined = "".join(f"#define {letter} 3\\n" for letter in "ABFNPQRST")
module = gk.compile(defined + "__constant__ float table[N];" + ADD, ["-DN=3"])
assert module.add.signature == "add(const float *a, float *b, int n)"
assert module._variables.known["table"][1] == (4, 4, 4, 3)
""")
