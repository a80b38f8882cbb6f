// Kernels that reverse each block's elements, right and with a bug planted in them: barriers,
// shuffles and votes.
#include "device.cuh"

GK_ROW(planted, reverse_warps, float32, reverse_warps, 1, 64, 4, 75, "clean: shuffles, then shared memory by warp")
GK_ROW(planted, intrinsics, float32, intrinsics, 1, 64, 4, 75, "clean: every intrinsic that threads meet at")
GK_ROW(planted, atomics, float32, atomics, 1, 64, 4, 75, "clean: every atomic")
GK_ROW(planted, narrow_types, float32, narrow_types, 1, 64, 4, 75, "clean: half and bfloat16 through shuffles and atomics")
GK_ROW(planted, spin, float32, spin, 1, 64, 4, 75, "clean: a thread spins until another one has stored")
GK_ROW(planted, last_block, float32, last_block, 1, 64, 4, 75, "clean: the last block to arrive finds the counter as it was before")
GK_ROW(planted, divergent, float32, divergent, 1, 64, 4, 75, "a barrier that half of the block skips")
GK_ROW(planted, returned, float32, returned, 1, 64, 4, 75, "a thread has returned before the barrier")
GK_ROW(planted, two_barriers, float32, two_barriers, 1, 64, 4, 75, "odd and even threads at different barriers")
GK_ROW(planted, too_few_rounds, float32, too_few_rounds, 1, 64, 4, 75, "one thread loops over a barrier once more")
GK_ROW(planted, exited_lane, float32, exited_lane, 1, 64, 4, 75, "a shuffle names a lane that has returned")
GK_ROW(planted, lane_at_barrier, float32, lane_at_barrier, 1, 64, 4, 75, "a shuffle names a lane that waits at a barrier")
GK_ROW(planted, masks_differ, float32, masks_differ, 1, 64, 4, 75, "lanes of one shuffle pass different masks")
GK_ROW(planted, two_meetings, float32, two_meetings, 1, 64, 4, 75, "odd lanes shuffle where even ones vote")
GK_ROW(planted, lane_left_out, float32, lane_left_out, 1, 64, 4, 75, "a mask that leaves out the caller")
GK_ROW(planted, outside_mask, float32, outside_mask, 1, 64, 4, 75, "a shuffle takes from lanes that its mask leaves out")
GK_ROW(planted, bad_width, float32, bad_width, 1, 64, 4, 75, "a shuffle of a width that is no power of two")
GK_ROW(planted, spins_for_ever, float32, spins_for_ever, 1, 64, 4, 75, "nobody stores what a thread spins for")
GK_ROW(planted, traps, float32, traps, 1, 64, 4, 75, "__trap()")

#ifndef GK_ROWS_ONLY

enum { THREADS = 64 };
#define KERNEL(name) extern "C" __global__ void name(float *out, const float *in, size_t)

__device__ static inline void reverse_block(float *out, float own) {
    __shared__ float cell[THREADS];
    cell[threadIdx.x] = own;
    __syncthreads(); // in the helper
    out[gk_thread()] = cell[THREADS - 1 - threadIdx.x];
}

KERNEL(reverse_warps) {
    __shared__ float cell[THREADS / GK_WARP][GK_WARP];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    cell[warp][lane] = __shfl_xor_sync(GK_ALL_LANES, in[gk_thread()], GK_WARP - 1);
    __syncthreads();
    out[gk_thread()] = cell[THREADS / GK_WARP - 1 - warp][lane];
}

__device__ static unsigned arrivals;
KERNEL(last_block) {
    reverse_block(out, in[gk_thread()]);
    if (gk_is_last(&arrivals, gridDim.x) && arrivals != 0)
        out[gk_thread()] = -1.0f;
}

// What the lanes outside hold of the shuffle before is what is wanted, and nobody's to take.
KERNEL(outside_mask) {
    unsigned lane = threadIdx.x % GK_WARP;
    float own = in[gk_thread()], across = __shfl_xor_sync(GK_ALL_LANES, own, GK_WARP - 1);
    if (lane < GK_WARP / 2 && __shfl_xor_sync(0xffff, across, GK_WARP - 1) != own)
        own = -1.0f;
    __shared__ float cell[THREADS];
    cell[threadIdx.x] = own;
    __syncthreads();
    out[gk_thread()] = cell[THREADS - 1 - threadIdx.x];
}

// -1 in place of the element where something is wrong.
#define CHECK(condition) good = good && (condition)

KERNEL(intrinsics) {
    int lane = (int)(threadIdx.x % 32), eighth = lane & ~7;
    bool good = true;
    CHECK(__shfl_sync(GK_ALL_LANES, lane, 5) == 5);
    CHECK(__shfl_sync(GK_ALL_LANES, lane, 37) == 5);
    CHECK(__shfl_sync(GK_ALL_LANES, lane, 3, 8) == eighth + 3);
    CHECK(__shfl_up_sync(GK_ALL_LANES, lane, 3) == (lane < 3 ? lane : lane - 3));
    CHECK(__shfl_up_sync(GK_ALL_LANES, lane, 3, 8) == (lane - eighth < 3 ? lane : lane - 3));
    CHECK(__shfl_down_sync(GK_ALL_LANES, lane, 3) == (lane + 3 > 31 ? lane : lane + 3));
    CHECK(__shfl_down_sync(GK_ALL_LANES, lane, 3, 8) == (lane - eighth > 4 ? lane : lane + 3));
    CHECK(__shfl_xor_sync(GK_ALL_LANES, lane, 9) == (lane ^ 9));
    CHECK(__shfl_xor_sync(GK_ALL_LANES, lane, 9, 8) == ((lane ^ 9) < eighth + 8 ? lane ^ 9 : lane));
    CHECK(__shfl_sync(GK_ALL_LANES, lane * 1e10, 7) == 7e10);
    CHECK(__shfl_sync(GK_ALL_LANES, (int64_t)lane << 40, 7) == (int64_t)7 << 40);
    CHECK(__ballot_sync(GK_ALL_LANES, lane % 4 == 1) == 0x22222222u);
    CHECK(__any_sync(GK_ALL_LANES, lane == 9) && !__any_sync(GK_ALL_LANES, lane == 32));
    CHECK(!__all_sync(GK_ALL_LANES, lane == 9) && __all_sync(GK_ALL_LANES, lane < 32));
    CHECK(__match_any_sync(GK_ALL_LANES, lane / 8) == 0xffu << eighth);
    CHECK(__activemask() >> lane & 1);
    if (lane < 8) { // fewer lanes than the warp has
        CHECK(__shfl_down_sync(0xff, lane, 1) == lane + 1 || lane == 7);
        CHECK(__ballot_sync(0xff, 1) == 0xff);
        __syncwarp(0xff);
    }
    __syncwarp();
    CHECK(__syncthreads_count(threadIdx.x % 3 == 0) == 22);
    CHECK(!__syncthreads_and(threadIdx.x != 5) && __syncthreads_and(1));
    CHECK(__syncthreads_or(threadIdx.x == 5) && !__syncthreads_or(0));
    CHECK(warpSize == 32 && blockDim.x == THREADS && blockDim.y == 1 && gridDim.z == 1);
    CHECK(__popc(0xf0f0u) == 8 && __clz(1) == 31 && __clz(0) == 32 && __ffs(8) == 4);
    CHECK(__brev(1) == 0x80000000u && __umulhi(0x80000000u, 4) == 2);
    CHECK(__funnelshift_r(0xf0u, 0xau, 36) == 0xa000000fu && __funnelshift_l(0xf0u, 0xau, 36) == 0xa0u);
    CHECK(min(NAN, 1.0f) == 1.0f && min(1.0f, NAN) == 1.0f && max(NAN, 1.0f) == 1.0f && max(1.0f, NAN) == 1.0f);
    CHECK(min(2, 3) == 2 && max(2.0f, 3) == 3.0f && min(1u, 7ull) == 1);
    CHECK(__float_as_int(1.0f) == 0x3f800000 && rsqrtf(4.0f) == 0.5f && fmaf(2, 3, 4) == 10);
    CHECK(fabsf(__expf(1.0f) - 2.7182818f) < 1e-5f && __ldg(in) == in[0]);
    reverse_block(out, good ? in[gk_thread()] : -1.0f);
}

KERNEL(atomics) {
    __shared__ int whole[8];
    __shared__ unsigned long long wide[3];
    __shared__ float real;
    __shared__ double precise;
    __shared__ unsigned turn, bits, down;
    int t = (int)threadIdx.x;
    if (t == 0) {
        down = 25; // beyond the limit: the first one takes it there
        whole[0] = whole[1] = whole[2] = whole[3] = 0;
        whole[4] = -1;
        wide[0] = wide[1] = wide[2] = 0;
        real = 0;
        precise = 0;
        turn = bits = 0;
    }
    __syncthreads();
    atomicAdd(whole, t);
    atomicSub(whole + 1, t);
    atomicMax(whole + 2, t);
    atomicMin(whole + 3, -t);
    atomicCAS(whole + 4, -1, t);
    atomicAdd(wide, 1ull << 40);
    atomicMax(wide + 1, (unsigned long long)t);
    atomicOr(wide + 2, 1ull << t);
    atomicAdd(&real, 0.5f);
    atomicAdd(&precise, 0.25);
    atomicInc(&turn, 9);
    atomicDec(&down, 9);
    atomicXor(&bits, 1u << (t % 32));
    __threadfence_block();
    __syncthreads();
    bool good = whole[0] == 2016 && whole[1] == -2016 && whole[2] == 63 && whole[3] == -63;
    CHECK(whole[4] >= 0 && whole[4] < THREADS && wide[0] == 64ull << 40 && wide[1] == 63);
    CHECK(~wide[2] == 0 && real == 32.0f && precise == 16.0 && turn == 64 % 10 && bits == 0);
    CHECK(down == 9 - 63 % 10);
    reverse_block(out, good ? in[gk_thread()] : -1.0f);
}

KERNEL(narrow_types) {
    __shared__ __half half_sum;
    __shared__ __nv_bfloat16 brain_sum;
    int lane = (int)(threadIdx.x % 32);
    bool good = __half2float(__shfl_xor_sync(GK_ALL_LANES, __int2half_rn(lane), 1)) == (lane ^ 1);
    __half2 both = __floats2half2_rn((float)lane, -1.0f);
    both = __hadd2(both, __shfl_down_sync(GK_ALL_LANES, both, 16));
    CHECK(lane >= 16 || (__low2float(both) == 2 * lane + 16 && __high2float(both) == -2.0f));
    CHECK(__bfloat162float(__shfl_sync(GK_ALL_LANES, __float2bfloat16((float)lane), 3)) == 3.0f);
    if (threadIdx.x == 0) {
        half_sum = __float2half(0.0f);
        brain_sum = __float2bfloat16(0.0f);
    }
    __syncthreads();
    atomicAdd(&half_sum, __float2half(1.0f));
    atomicAdd(&brain_sum, __float2bfloat16(1.0f));
    __syncthreads();
    CHECK(__half2float(half_sum) == 64.0f && __bfloat162float(brain_sum) == 64.0f);
    reverse_block(out, good ? in[gk_thread()] : -1.0f);
}

KERNEL(spin) {
    __shared__ int ready;
    if (threadIdx.x == 40)
        atomicExch(&ready, 0);
    __syncthreads();
    if (threadIdx.x == 7)
        atomicExch(&ready, 1);
    else if (threadIdx.x % 2 == 0)
        while (atomicAdd(&ready, 0) == 0)
            ;
    reverse_block(out, in[gk_thread()]);
}

KERNEL(spins_for_ever) {
    __shared__ int ready;
    atomicExch(&ready, 0);
    __syncthreads();
    while (atomicAdd(&ready, 0) == 0)
        ;
    reverse_block(out, in[gk_thread()]);
}

KERNEL(divergent) {
    if (threadIdx.x < 32)
        __syncthreads(); // skipped by half of the block
    reverse_block(out, in[gk_thread()]);
}

KERNEL(returned) {
    if (threadIdx.x == 5)
        return;
    reverse_block(out, in[gk_thread()]);
}

KERNEL(two_barriers) {
    if (threadIdx.x % 2)
        __syncthreads(); // the odd ones
    else
        __syncthreads(); // the even ones
    reverse_block(out, in[gk_thread()]);
}

KERNEL(too_few_rounds) {
    for (unsigned i = 0; i < 2 + (threadIdx.x == 9); i++)
        __syncthreads(); // unequally often
    out[gk_thread()] = in[gk_thread()];
}

KERNEL(exited_lane) {
    if (threadIdx.x % 32 == 31)
        return;
    out[gk_thread()] = __shfl_down_sync(GK_ALL_LANES, in[gk_thread()], 1); // names lane 31
}

KERNEL(lane_at_barrier) {
    if (threadIdx.x % 32 == 3)
        __syncthreads();
    out[gk_thread()] = __shfl_xor_sync(GK_ALL_LANES, in[gk_thread()], 31); // names lane 3, too
    __syncthreads();
}

KERNEL(masks_differ) {
    unsigned mask = threadIdx.x % 32 == 5 ? 0xffffffbfu : GK_ALL_LANES;
    out[gk_thread()] = __shfl_xor_sync(mask, in[gk_thread()], 1); // two masks
}

KERNEL(two_meetings) {
    float own = in[gk_thread()];
    if (threadIdx.x % 2 == 0)
        own += __ballot_sync(GK_ALL_LANES, 1) == 1; // a vote
    else
        own = __shfl_xor_sync(GK_ALL_LANES, own, 0);
    reverse_block(out, own);
}

KERNEL(lane_left_out) {
    out[gk_thread()] = __shfl_xor_sync(0xfffffffeu, in[gk_thread()], 31); // not its own lane
}

KERNEL(bad_width) {
    out[gk_thread()] = __shfl_xor_sync(GK_ALL_LANES, in[gk_thread()], 1, 24); // of width 24
}

KERNEL(traps) {
    if (threadIdx.x == 3 && in[0] == 0.0f)
        __trap(); // traps here
    out[gk_thread()] = in[gk_thread()];
}

#endif
