"""The simulator's strictness, proven by bugs planted in kernels (tests/planted) that it must catch.

The kernels and a small harness in C are compiled with the system's compilers, as the extension's
own are, and once more with AddressSanitizer and UBSan, and with ThreadSanitizer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLANTED = ROOT / "tests" / "planted"
FAMILIES = ["memory", "waits"]
SEEDS = [0, 1, 2, 3, 12345]
C_FLAGS = ["-std=c17", "-g", "-fno-strict-aliasing", "-DGK_SIM_SPIN_SECONDS=1"]
BODY_FLAGS = ["-std=c++17", "-g", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti"]
CHECKS = "-fsanitize=alignment,bounds,null,integer-divide-by-zero"
THREAD = ["-O1", "-fsanitize=thread"]
ADDRESS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

Harness = Callable[..., str]


def cuda_headers() -> Path | None:
    """The folder of cuda_fp16.h: CUDA_HOME's, that of nvcc on PATH, or the wheels'."""
    nvcc = shutil.which("nvcc")
    places = [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
    places += [Path(nvcc).resolve().parent.parent] if nvcc else []
    places += [Path("/usr/local/cuda"), *(Path(entry, "nvidia", "cu13") for entry in sys.path)]
    for place in places:
        if (place / "include" / "cuda_fp16.h").is_file():
            return place / "include"
    return None


def compile_all(commands: list[list[str]], folder: Path) -> None:
    """Run the compilers side by side; the first failure is the test's."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        run = lambda command: subprocess.run(  # noqa: E731
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
        for command, done in zip(commands, pool.map(run, commands), strict=True):
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def build(folder: Path, c_flags: list[str], body_flags: list[str], link: list[str]) -> Path:
    """The harness with all planted kernels."""
    headers = cuda_headers()
    if headers is None:
        pytest.skip("CUDA headers not installed")
    families = "".join(f"GK_FAMILY({name})\n" for name in FAMILIES)
    (folder / "gk_families.h").write_text(families)
    includes = ["-I.", *(f"-I{ROOT / name}" for name in ("csrc", "cuda", "tests/planted"))]
    sources = [*(ROOT / "cuda" / "sim").glob("*.c"), PLANTED / "harness.c"]
    sources += (ROOT / "csrc/device/sim").glob("*.c")
    sources += [ROOT / f"csrc/base/{name}.c" for name in ("error", "lock", "memory")]
    commands = [
        ["gcc", *C_FLAGS, *c_flags, *includes, "-c", str(source), "-o", f"{source.stem}.o"]
        for source in sources
    ]
    for name in FAMILIES:
        defines = ["-DGK_SIM", f"-DGK_FAMILY={name}", f'-DGK_FAMILY_FILE="{name}.cu"']
        flags = [*BODY_FLAGS, "-Wno-unknown-pragmas", *body_flags, *defines, *includes]
        bodies = ["-isystem", str(headers), "-c", str(ROOT / "cuda/sim/bodies.cpp")]
        commands.append(["g++", *flags, *bodies, "-o", f"bodies_{name}.o"])
    compile_all(commands, folder)
    objects = [command[-1] for command in commands]
    compile_all([["gcc", *link, *objects, "-o", "harness", "-pthread"]], folder)
    return folder / "harness"


def runner(path: Path) -> Harness:
    """harness(kernel, blocks, threads, ..., seed=1, cores=None): all that it prints."""

    def run(*arguments: object, seed: int | str = 1, cores: int | str = "") -> str:
        environment = {
            **os.environ,
            "GPUKERN_SIM_LAZY": "0",  # a launch says what is wrong with it, not a later call
            "GPUKERN_SIM_SEED": str(seed),
            "GPUKERN_SIM_THREADS": str(cores),
        }
        done = subprocess.run(
            [path, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr}"
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """As the extension is built."""
    return runner(build(tmp_path_factory.mktemp("plain"), ["-O2"], ["-O2", CHECKS], []))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """With AddressSanitizer and UBSan."""
    return runner(build(tmp_path_factory.mktemp("address"), ADDRESS, ADDRESS, ADDRESS))


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """With ThreadSanitizer in the kernels, and the scheduler telling it what runs."""
    folder = tmp_path_factory.mktemp("races")
    run = runner(build(folder, ["-O1", "-DGK_SIM_TSAN"], THREAD, ["-fsanitize=thread"]))
    if "unexpected memory mapping" in run("reverse"):
        pytest.skip("this kernel's address randomization is too wide for ThreadSanitizer")
    return run


def line_of(file: str, text: str) -> int:
    """The number of the line of a planted kernel that contains the text."""
    lines = (PLANTED / file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


CLEAN = [
    ("reverse",),
    ("reverse_dynamic", 4, 64, 256),
    ("reverse_vector",),
    ("reverse_rounds",),
    ("reverse_warps",),
    ("reverse_three", "3x5x2", "4x8x2"),
    ("intrinsics",),
    ("atomics",),
    ("narrow_types",),
    ("spin",),
    ("last_block",),
]


@pytest.mark.costly(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("arguments", CLEAN, ids=lambda arguments: arguments[0])
def test_clean_kernels_pass_in_any_order(
    plain: Harness, arguments: tuple[object, ...], seed: int
) -> None:
    name, *shape = arguments
    assert plain(*arguments, seed=seed) == "right\n"
    many = "25x4x5" if "x" in str(shape) else 500
    assert plain(name, many, *shape[1:], seed=seed, cores=3) == "right\n"


@pytest.mark.costly(2)
@pytest.mark.parametrize("arguments", CLEAN, ids=lambda arguments: arguments[0])
def test_clean_kernels_are_clean_for_the_sanitizers(
    address: Harness, arguments: tuple[object, ...]
) -> None:
    assert address(*arguments) == "right\n"
    assert address(*arguments, seed=7, cores=3) == "right\n"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "arguments",
    [
        *(("missing_barrier",), ("missing_second",), ("uninitialised",), ("stale",)),
        *(("stale_dynamic", 4, 64, 260), ("outside_mask",)),
    ],
    ids=lambda arguments: arguments[0],
)
def test_wrong_use_of_shared_memory_and_lanes_gives_a_wrong_result(
    plain: Harness, arguments: tuple[object, ...], seed: int
) -> None:
    assert plain(*arguments, seed=seed).startswith("wrong")


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("kernel", ["uninitialised", "stale"])
def test_shared_memory_is_poison_in_every_launch(plain: Harness, kernel: str, cores: int) -> None:
    """What a kernel was seen to use is filled, and only now and then is all of it looked at."""
    first, *rest = plain("reverse", 500, 64, 0, kernel, 20, cores=cores).splitlines()
    assert first == "right"
    assert len(rest) == 20
    assert all(line.startswith("wrong") for line in rest)


@pytest.mark.costly(2)
@pytest.mark.parametrize("arguments", CLEAN, ids=lambda arguments: arguments[0])
def test_clean_kernels_have_no_races(races: Harness, arguments: tuple[object, ...]) -> None:
    assert races(*arguments) == "right\n"
    assert races(*arguments, seed=7, cores=3) == "right\n"


RACES = [
    ("missing_barrier", "cell[t] = in[gk_thread()]; // too late", "// too early"),
    ("missing_second", "cell[t] = round", "first = cell"),
    ("last_writer", "out[0] =", "out[0] ="),
]


@pytest.mark.parametrize(("kernel", "one", "other"), RACES)
def test_races_are_shown_by_the_thread_sanitizer(
    races: Harness, kernel: str, one: str, other: str
) -> None:
    said = races(kernel)
    assert "WARNING: ThreadSanitizer: data race" in said
    for text in (one, other):
        assert f"memory.cu:{line_of('memory.cu', text)} " in said, said


def test_the_thread_sanitizer_gets_over_faults(races: Harness) -> None:
    assert races("divergent", 4, 64, 0, "reverse").endswith("\nright\n")
    assert races("threads", cores=3) == "right\n"


def test_a_result_that_depends_on_the_order_differs_between_seeds(plain: Harness) -> None:
    assert len({plain("last_writer", seed=seed, cores=1) for seed in range(8)}) > 4
    assert len({plain("last_writer", seed=5, cores=1) for _ in range(4)}) == 1


# What the simulator itself catches: kernel, what the sentence says, where: (file, text of line).
CAUGHT = {
    "divergent": (
        r"waits at __syncthreads\(\) in (\S+), which 32 of the block's 64 threads do not reach",
        ("waits.cu", "skipped by half"),
    ),
    "returned": (
        r"in (\S+), which 1 of .* thread \(5, 0, 0\) has returned",
        ("waits.cu", "in the helper"),
    ),
    "two_barriers": (r"__syncthreads\(\) in (\S+), which 32 .* waits at", ("waits.cu", "the even")),
    "too_few_rounds": (r"thread \(9, 0, 0\) waits .* in (\S+), which 63", ("waits.cu", "unequal")),
    "exited_lane": (
        r"__shfl_down_sync\(\) in (\S+) with mask 0xffffffff, which names lane 31, "
        r"but thread \((31|63), 0, 0\) has returned",
        ("waits.cu", "names lane 31"),
    ),
    "lane_at_barrier": (
        r"__shfl_xor_sync\(\) in (\S+) .* lane 3, but .* waits at __syncthreads\(\)",
        ("waits.cu", "names lane 3,"),
    ),
    "masks_differ": (r"in (\S+) with mask 0xffffffff", ("waits.cu", "two masks")),
    "two_meetings": (
        r"__ballot_sync\(\) in (\S+) with mask 0xffffffff, .* waits at __shfl_xor_sync\(\)",
        ("waits.cu", "// a vote"),
    ),
    "lane_left_out": (r"(\S+): the mask 0xfffffffe leaves out the lane", ("waits.cu", "own lane")),
    "bad_width": (r"(\S+): a shuffle of width 24", ("waits.cu", "of width 24")),
    "spins_for_ever": (r"it spins on an atomic", None),
    "traps": (r"thread \(3, 0, 0\), (\S+): __trap\(\) was called", ("waits.cu", "traps here")),
}
# What only g++'s checks catch; the sanitizers' libraries word it in their own way.
CHECKED = {
    "shared_past": (
        r"(\S+): index 64 is out of bounds of 'float \[64\]'",
        r"index 64 out of bounds for type 'float \[64\]'",
        ("memory.cu", "past the array"),
    ),
    "misaligned": (
        r"(\S+): misaligned .*float4' at 0x[0-9a-f]+, which is not a multiple of 16",
        r"misaligned address .* 'const struct float4'",
        ("memory.cu", "the vector load"),
    ),
    "null_pointer": (
        r"(\S+): load of 'const float' through a null pointer",
        r"load of null pointer of type 'const float'",
        ("memory.cu", "from address 0"),
    ),
    "divides_by_zero": (
        r"(\S+): an integer division by zero",
        r"runtime error: division by zero",
        ("memory.cu", "by zero"),
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kernel", [*CAUGHT, *CHECKED])
def test_caught_with_kernel_block_thread_and_line(plain: Harness, kernel: str, seed: int) -> None:
    pattern, where = CAUGHT[kernel] if kernel in CAUGHT else CHECKED[kernel][::2]
    said = plain(kernel, seed=seed)
    assert re.match(rf"error: {kernel}: block \(\d, 0, 0\): thread \(\d+, 0, 0\)", said), said
    found = re.search(pattern, said)
    assert found, said
    if where:
        assert found.group(1).rstrip(",") == f"{where[0]}:{line_of(*where)}"


@pytest.mark.parametrize("kernel", CAUGHT)
def test_caught_under_the_sanitizers_too(address: Harness, kernel: str) -> None:
    said = address(kernel)
    assert re.search(CAUGHT[kernel][0], said), said


@pytest.mark.parametrize("kernel", CHECKED)
def test_shown_by_ubsan_with_its_line(address: Harness, kernel: str) -> None:
    _, pattern, where = CHECKED[kernel]
    said = address(kernel)
    assert re.search(pattern, said), said
    assert f"{where[0]}:{line_of(*where)}" in said


BEYOND = [
    ("write_past", "WRITE of size 4", "= 0; // past the end", []),
    ("write_before", "WRITE of size 4", "before the start", []),
    ("read_past", "READ of size 4", "reads past", []),
    ("dynamic_past", "WRITE of size 4", "past dynamic", [4, 64, 256]),
]


@pytest.mark.parametrize(("kernel", "access", "line", "shape"), BEYOND)
def test_out_of_bounds_is_shown_by_the_address_sanitizer_with_its_line(
    address: Harness, kernel: str, access: str, line: str, shape: list[int]
) -> None:
    said = address(kernel, *shape)
    assert "heap-buffer-overflow" in said
    assert access in said
    assert re.search(rf"#0 .* in {kernel} \S*memory.cu:{line_of('memory.cu', line)}\b", said), said


def test_writes_out_of_bounds_are_caught_without_a_sanitizer(plain: Harness) -> None:
    past, before = plain("write_past"), plain("write_before")
    assert "write_past wrote out of bounds: at byte 1024 of an allocation of 1024" in past
    assert "write_before wrote out of bounds: at byte -1 of an allocation of 1024" in before
    said = plain("dynamic_past", 4, 64, 256, "reverse_dynamic")
    assert "wrote past the end of its dynamic shared memory" in said
    assert said.endswith("\nright\n"), "the next launch is not blamed"


LIMITS = [
    ((1, 1025), "a block of 1025 threads in x; the limit is 1024"),
    ((1, "512x1x3"), "a block of (512, 1, 3) is 1536 threads; the limit is 1024"),
    ((1, "1x1x65"), "a block of 65 threads in z; the limit is 64"),
    ((1, "1x1025"), "a block of 1025 threads in y; the limit is 1024"),
    ((0, 64), "a grid of (0, 1, 1) blocks of (64, 1, 1) threads is empty"),
    (("1x65536", 1), "a grid of 65536 blocks in y; the limit is 65535"),
    (("1x1x65536", 1), "a grid of 65536 blocks in z; the limit is 65535"),
    ((2147483648, 1), "a grid of 2147483648 blocks in x; the limit is 2147483647"),
    ((1, 64, 49153), "49153 bytes of dynamic shared memory a block; the limit is 49152"),
]


@pytest.mark.parametrize(("shape", "sentence"), LIMITS)
def test_limits_of_a_launch(plain: Harness, shape: tuple[int, ...], sentence: str) -> None:
    assert plain("reverse", *shape) == f"error: reverse: {sentence}\n"


def test_the_limits_themselves_are_within_them(plain: Harness) -> None:
    assert plain("reverse_dynamic", 4, 1024, 49152) == "right\n"
    assert plain("reverse_three", "1x65535", 1) == "right\n"
    assert plain("reverse_three", "1x1x65535", 1) == "right\n"
    assert plain("reverse_three", 1, "4x4x64") == "right\n"


def test_dynamic_shared_memory_that_the_launch_does_not_give(plain: Harness) -> None:
    line = line_of("memory.cu", "GK_DYNAMIC_SHARED(float, wanted)")
    said = plain("no_dynamic")
    assert f"memory.cu:{line}: dynamic shared memory is used, but the launch gives none" in said


def test_a_full_mask_in_a_warp_that_is_not_full(plain: Harness) -> None:
    said = plain("reverse_warps", 1, 48)
    assert "but a block of 48 threads has no lane 16 in its warp 1" in said


@pytest.mark.parametrize("kernel", [*CAUGHT, *CHECKED])
def test_the_next_launch_works(plain: Harness, kernel: str) -> None:
    first, second = plain(kernel, 4, 64, 0, "reverse").splitlines()
    assert first.startswith("error")
    assert second == "right"


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_launches_from_many_threads_at_once(plain: Harness, address: Harness, cores: int) -> None:
    assert plain("threads", cores=cores) == "right\n"
    assert address("threads", cores=cores) == "right\n"


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_the_child_of_a_fork_works(plain: Harness, cores: int) -> None:
    assert plain("fork", cores=cores) == "right\n"


@pytest.mark.parametrize("value", ["-1", "one", "1x", "99999999999999999999"])
def test_a_seed_that_is_no_number_is_named(plain: Harness, value: str) -> None:
    said = plain("reverse", seed=value)
    assert f"GPUKERN_SIM_SEED is '{value}', not a number" in said


def test_the_extension_has_no_other_thread_locals() -> None:
    """The simulator fills all of the module's with poison, since they are shared memory."""
    for source in (ROOT / "csrc").rglob("*.[ch]"):
        assert not re.search(r"\b(_Thread_local|thread_local|__thread)\b", source.read_text())
