"""Users' kernels that are wrong, and what the simulator says of them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
from simulated import AT_ONCE, ON_THE_SIMULATOR
from waiting import join_all

pytestmark = ON_THE_SIMULATOR

BROKEN = r"""
struct Node { int value; Node *next; };
__global__ void off_by_one(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] = 1; // off_by_one
}
__global__ void reads_behind(const float *x, float *y, int n) {
    int i = threadIdx.x;
    y[i] =
        x[i + 1]; // reads_behind
}
__global__ void in_front(float *x) {
    x[(int)threadIdx.x - 1] = 1; // in_front
}
__global__ void no_bound(float *x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1; // no_bound
}
__global__ void stray(float *x) {
    float *far = x + (1ull << 40);
    *far = 1; // stray
}
__global__ void null_pointer(float *x) {
    x[threadIdx.x] = 1; // null_pointer
}
__global__ void missing_barrier(const float *x, float *y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x]; // missing_barrier
}
__global__ void race_in_a_sum(const float *x, float *y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int k = 32; k; k /= 2)
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; // race_in_a_sum
    y[0] = s[0];
}
__global__ void race_of_writes(float *y) {
    __shared__ int last;
    last = threadIdx.x; // race_of_writes
    __syncthreads();
    y[threadIdx.x] = last;
}
__global__ void counted_without_atomics(int *y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    n++; // counted_without_atomics
    __syncthreads();
    y[0] = n;
}
__global__ void read_too_early(int *y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1); // read_too_early
    y[threadIdx.x] = n; // read_too_early
}
__global__ void divergent(float *y) {
    if (threadIdx.x < 10)
        __syncthreads(); // divergent
    y[0] = 1;
}
__global__ void endless_barrier(float *y) {
    while (threadIdx.x == 0)
        __syncthreads(); // endless_barrier
}
__global__ void left_before(float *y, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads(); // left_before
    y[threadIdx.x] = 1;
}
__global__ void misaligned(float *x) {
    float4 v = *(float4 *)(x + 1); // misaligned
    x[0] = v.x;
}
__global__ void uninitialised(float *y) {
    __shared__ float s[64];
    y[threadIdx.x] = s[threadIdx.x]; // uninitialised
}
__global__ void never_zeroed(int *y) {
    __shared__ int n;
    atomicAdd(&n, 1); // never_zeroed
    __syncthreads();
    y[0] = n;
}
__global__ void too_little_shared(float *y) {
    extern __shared__ float s[];
    s[threadIdx.x] = y[threadIdx.x]; // too_little_shared
}
__global__ void wrong_block(float *y) {
    __shared__ float s[32];
    s[threadIdx.x] = y[threadIdx.x]; // wrong_block
}
__global__ void by_zero(int *y) {
    y[1] = y[1] / y[0]; // by_zero
}
__device__ int sign_of(int x) { if (x > 0) return 1; } // no_return
__global__ void no_return(int *y) {
    y[0] = sign_of(-1 - y[0]);
}
__global__ void wrong_mask(int *y) {
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_down_sync(0xffffffff, y[threadIdx.x], 1); // wrong_mask
}
__global__ void old_warp_sum(volatile float *y) {
    __shared__ volatile float s[64];
    s[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] += s[threadIdx.x + 32];
        s[threadIdx.x] += s[threadIdx.x + 16]; // old_warp_sum
    }
    y[0] = s[0];
}
__device__ void helper(float *x, int i) {
    x[i] = 1; // in_a_function
}
__global__ void in_a_function(float *x) {
    helper(x, threadIdx.x + 1);
}
template <class T> __global__ void in_a_template(T *x) {
    x[threadIdx.x + 1] = 1; // in_a_template
}
__global__ void atomic_outside(int *x) {
    atomicAdd(x + 64 + threadIdx.x, 1); // atomic_outside
}
__global__ void asserted(int *x) {
    assert(x[0] == 3); // asserted
}
__global__ void copied(char *x, int n) {
    memcpy(x, x + 60, n); // copied
}
__device__ __noinline__ int deeper(int *x, int n) {
    volatile int here[100];
    here[0] = n;
    return x[0] == 0 ? deeper(x, n + 1) + here[0] : 0;
}
__global__ void recursive(int *x) { x[1] = deeper(x, 0); }
__global__ void last_one_wins(int *x) {
    x[0] = threadIdx.x; // last_one_wins
}
__global__ void last_block_wins(int *x) {
    x[0] = blockIdx.x; // last_block_wins
}
__global__ void moved_in_place(float *x, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 63) x[i] = by + x[i + 1]; // moved_in_place
}
__global__ void barrier_of_one_block(int *x, int *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i + 1; // barrier_of_one_block
    __syncthreads();
    y[i] = x[63 - i]; // barrier_of_one_block
}
__global__ void counted_in_global_memory(int *x) {
    x[0] = x[0] + 1; // counted_in_global_memory
}
__global__ void zeroed_by_one(int *sum) {
    if (blockIdx.x == 1 && threadIdx.x == 0) *sum = 0; // zeroed_by_one
    atomicAdd(sum, 1); // zeroed_by_one
}
__global__ void mean_too_early(int *sum, int *mean) {
    atomicAdd(sum, 1); // mean_too_early
    if (blockIdx.x == 0 && threadIdx.x == 0) *mean = *sum / 64; // mean_too_early
}
__device__ int how_many;
__global__ void counted_in_a_variable(int *x) {
    how_many++; // counted_in_a_variable
}
__global__ void flag_without_a_fence(int *x, volatile int *ready) {
    if (blockIdx.x == 0) {
        x[0] = 5; // flag_without_a_fence
        *ready = 1;
    } else {
        x[1] = x[0] + *ready; // flag_without_a_fence
    }
}
__global__ void structures_written(double2 *x) {
    x[0] = make_double2(1, threadIdx.x); // structures_written
}
__global__ void copies_written(char *x, const char *y) {
    memcpy(x, y + threadIdx.x, 12); // copies_written
}
"""
BROKEN = BROKEN.replace("struct Node", "#include <assert.h>\nstruct Node", 1)

FLOATS, INTS = np.ones(64, np.float32), np.zeros(64, np.int32)
CASES = {
    "off_by_one": ((2, 64, FLOATS, 64), {}, "it writes 4 bytes out of bounds: 0 bytes behind"),
    "reads_behind": ((1, 64, FLOATS, FLOATS.copy(), 64), {}, "it reads 4 bytes out of bounds"),
    "in_front": ((1, 64, FLOATS), {}, "4 bytes in front of an array of 256"),
    "no_bound": ((2, 48, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "stray": ((1, 1, FLOATS), {}, "which is in no array"),
    "null_pointer": ((1, 4, None), {}, "null pointer"),
    "missing_barrier": ((1, 64, FLOATS, FLOATS.copy()), {}, "__syncthreads()"),
    "race_in_a_sum": ((1, 64, FLOATS, FLOATS.copy()), {}, "a race: it"),
    "race_of_writes": ((1, 64, FLOATS), {}, "a race: it writes shared memory that thread ("),
    "counted_without_atomics": ((1, 64, INTS), {}, "a race: it reads"),
    "read_too_early": ((1, 64, INTS), {}, "a race: it"),
    "divergent": ((1, 64, FLOATS), {}, "which 54 of the block's 64 threads do not reach"),
    "endless_barrier": ((1, 64, FLOATS), {}, "which 63 of the block's 64 threads do not reach"),
    "left_before": ((1, 64, FLOATS, 50), {}, "has returned"),
    "misaligned": ((1, 1, FLOATS), {}, "misaligned"),
    "uninitialised": ((1, 64, FLOATS), {}, "that no thread has written since the block began"),
    "never_zeroed": ((1, 64, INTS), {}, "it changes shared memory that no thread has written"),
    "too_little_shared": (
        (1, 64, FLOATS),
        {"shared": 128},
        "of dynamic shared memory, and the launch gives 128 (shared=)",
    ),
    "wrong_block": ((1, 64, FLOATS), {}, "is out of bounds of 'float [32]'"),
    "by_zero": ((1, 1, INTS), {}, "division by zero"),
    "no_return": ((1, 1, INTS), {}, "the end of a function that has to return a value"),
    "wrong_mask": ((1, 64, INTS), {}, "names lane"),
    "old_warp_sum": ((1, 64, FLOATS), {}, "a race: it"),
    "in_a_function": ((1, 64, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "in_a_template<float>": ((1, 64, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "atomic_outside": ((1, 1, INTS), {}, "it changes 4 bytes out of bounds"),
    "asserted": ((1, 1, INTS), {}, "assert(x[0] == 3) does not hold"),
    "copied": ((1, 1, np.zeros(64, np.uint8), 32), {}, "it reads 32 bytes out of bounds"),
    "last_one_wins": ((1, 64, INTS), {}, "has written something else to at broken.cu:"),
    "last_block_wins": ((3, 1, INTS), {}, "and the blocks of a launch come in no order"),
    "moved_in_place": ((1, 64, FLOATS, 2.0), {}, "with no __syncthreads() between"),
    "barrier_of_one_block": ((2, 32, INTS, INTS.copy()), {}, "the blocks of a launch come in no"),
    "counted_in_global_memory": ((2, 1, INTS), {}, "byte 0 of an array of 256 that thread (0, 0,"),
    "zeroed_by_one": ((2, 8, INTS), {}, "a race: it"),
    "mean_too_early": ((2, 32, INTS, INTS.copy()), {}, "a race: it"),
    "counted_in_a_variable": ((1, 8, INTS), {}, "a variable of the module that thread ("),
    "flag_without_a_fence": ((2, 1, INTS, INTS.copy()), {}, "a race: it"),
    "structures_written": ((1, 32, np.zeros(4)), {}, "has written something else to"),
    "copies_written": (
        (1, 4, np.zeros(64, np.uint8), np.arange(64, dtype=np.uint8)),
        {},
        "has written something else to",
    ),
}
# What is wrong is in two lines.
OF_TWO_LINES = ["barrier_of_one_block", "zeroed_by_one", "mean_too_early", "flag_without_a_fence"]


@pytest.fixture(scope="module")
def broken(kept):
    """Kernels as learners write them."""
    return gk.compile(BROKEN, name="broken.cu")


@AT_ONCE
@pytest.mark.parametrize("name", CASES)
def test_a_broken_kernel_is_found_with_its_line(broken, name):
    arguments, named, words = CASES[name]
    plain = name.partition("<")[0]
    lines = [at for at, line in enumerate(BROKEN.splitlines(), 1) if line.endswith(f"// {plain}")]
    before = [np.copy(one) for one in arguments if isinstance(one, np.ndarray)]
    with pytest.raises(gk.CudaError) as caught:
        broken[name](*arguments, **named)
    said = str(caught.value)
    assert said.startswith(f"{name}: block (")
    assert words in said, said
    assert any(f"broken.cu:{line}" in said for line in lines), (said, lines)
    assert "thread (" in said
    after = [one for one in arguments if isinstance(one, np.ndarray)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@AT_ONCE
@pytest.mark.parametrize("name", OF_TWO_LINES)
def test_a_race_on_global_memory_names_both_lines(broken, name):
    lines = [at for at, line in enumerate(BROKEN.splitlines(), 1) if line.endswith(f"// {name}")]
    with pytest.raises(gk.CudaError) as caught:
        broken[name](*CASES[name][0])
    assert len(lines) == 2
    assert all(f"broken.cu:{line}" in str(caught.value) for line in lines), caught.value
    assert ") of block (" in str(caught.value)


HONEST = r"""
__global__ void flags(const float *x, int *found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 5) *found = 1;
}
__global__ void bytes(char *x, short *y, char *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    y[i] = x[i] + 1;
    memcpy(z + 3 * i, x + i, 1);
    z[3 * i + 1] = z[3 * i + 2] = z[3 * i] + 1;
}
__global__ void in_turns(int *x, int *y) { // barriers order what a block has in global memory
    int i = threadIdx.x, n = blockDim.x;
    x += blockIdx.x * n;
    for (int step = 0; step < 5; step++) {
        int next = x[(i + 1) % n];
        __syncthreads();
        x[i] = next + 1;
        __syncthreads();
    }
    y[blockIdx.x * n + i] = x[n - 1 - i];
}
__global__ void in_warps(int *x) {
    int lane = threadIdx.x % 32, *mine = x + threadIdx.x / 32 * 32;
    int next = mine[(lane + 1) % 32];
    __syncwarp();
    mine[lane] = next;
    __syncwarp();
    mine[lane] += mine[lane] > 0 ? 1 : 0;
}
__device__ unsigned finished;
__global__ void last_block_sums(const int *x, int *parts, int *sum) {
    __shared__ bool is_last;
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = s;
        __threadfence();
        is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int total = 0;
        for (int i = 0; i < gridDim.x; i++) total += parts[i];
        *sum = total;
    }
}
__device__ int lock;
__global__ void locked_over_blocks(int *sum) {
    if (threadIdx.x) return;
    while (atomicCAS(&lock, 0, 1)) ;
    __threadfence();
    *sum = *sum + 1;
    __threadfence();
    atomicExch(&lock, 0);
}
__global__ void most(const int *x, int *best) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > *(volatile int *)best) atomicMax(best, x[i]);
}
__global__ void all_the_same(int *x, int *y) {
    for (int i = 0; i < 4; i++) x[i] = 7 + i;
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x % 4];
}
"""


@AT_ONCE
def test_honest_kernels_are_not_accused():
    module = gk.compile(HONEST)
    n = 64 * 256  # more than one core's share
    for _ in range(3):
        x, found = np.arange(n, dtype=np.float32), np.zeros(1, np.int32)
        module.flags(64, 256, x, found, n)
        assert found[0] == 1
        a, b, c = np.zeros(n, np.int8), np.zeros(n, np.int16), np.zeros(3 * n, np.int8)
        module.bytes(64, 256, a, b, c)
        np.testing.assert_array_equal(a, np.arange(n).astype(np.int8))
        x, y = np.zeros(n, np.int32), np.zeros(n, np.int32)
        module.in_turns(64, 256, x, y)
        assert set(y) == {5}
        x = np.tile(np.arange(32, dtype=np.int32), 8)
        module.in_warps(1, 256, x)
        x, parts, total = (
            np.arange(n, dtype=np.int32),
            np.zeros(64, np.int32),
            np.zeros(1, np.int32),
        )
        module.last_block_sums(64, 256, x, parts, total)
        assert total[0] == x.sum()
        total[0] = 0
        module.locked_over_blocks(64, 128, total)
        assert total[0] == 64
        module.most(64, 256, x, total)
        assert total[0] == n - 1
        module.all_the_same(64, 256, x[:4].copy(), y)
        np.testing.assert_array_equal(y, np.tile([7, 8, 9, 10], n // 4))


@AT_ONCE
def test_more_memory_than_is_looked_into():
    """Of a large array what is touched first is looked into, and the rest is right."""
    module = gk.compile(
        "__global__ void f(float *x, int n) {"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
        "    x[i] = i; }"
        "__global__ void g(float *x, int n) { x[n - 1] = blockIdx.x; }"
    )
    x = np.zeros(4 << 20, np.float32)
    module.f(2048, 256, x, x.size)
    np.testing.assert_array_equal(x, np.arange(x.size))
    with pytest.raises(gk.CudaError, match="a race: it writes byte 16777212 of an array of"):
        module.g(4, 1, x, x.size)


@AT_ONCE
def test_endless_recursion_ends_the_launch(broken):
    with pytest.raises(gk.CudaError, match=r"recursive: block .* its stack is used up"):
        broken.recursive(2, 64, INTS)


@AT_ONCE
def test_the_next_launch_works_and_nothing_leaks(broken):
    plain = gk.compile("__global__ void twice(float *y) { y[threadIdx.x] *= 2; }").twice
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(gk.CudaError):
            broken.stray(1, 1, FLOATS)
        y = np.ones(10, np.float32)
        plain(1, 10, y)
        assert (y == 2).all()
    for _ in range(20):
        gk.compile("__global__ void f(int *a) { *a = 1; }").f(1, 1, np.zeros(1, np.int32))
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 1


@AT_ONCE
@pytest.mark.usefixtures("control_c")
@pytest.mark.parametrize("blocks", [1, 200])
def test_control_c_ends_an_endless_loop(blocks):
    module = gk.compile(
        "__global__ void forever(int *n) { for (unsigned i = 0; *n == 0; i++) if (i == 7) i = 0; }"
        "__global__ void idle(int *n) { volatile int i = 0; while (1) i = i + 1; }"
    )
    for kernel in (module.forever, module.idle):
        stop = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        stop.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            kernel(blocks, 64, np.zeros(1, np.int32))
        assert time.monotonic() - began < 20
        join_all(stop)


@pytest.mark.parametrize("waits", ["y[1] == 0", "atomicAdd((int *)&y[1], 0) == 0"])
def test_a_thread_that_waits_for_another_lets_it_go_on(waits, script):
    code = f"""
import gpukern as gk, numpy as np
module = gk.compile(
    "__global__ void handed(volatile int *y) {{"
    "  if (threadIdx.x == 0) {{ while ({waits}) ; y[0] = y[1]; }}"
    "  if (threadIdx.x == 1) y[1] = 7; }}"
)
y = np.zeros(2, np.int32)
module.handed(1, 2, y)
print(list(map(int, y)))
"""
    for seed in (0, 3):  # in the natural order the one that waits comes first
        done = script(code, GPUKERN_DEVICE="sim", GPUKERN_SIM_SEED=str(seed), GPUKERN_SIM_LAZY="0")
        assert done.stdout.strip() == "[7, 7]", done
