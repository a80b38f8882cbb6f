// Tensor cores: an instruction of a warp multiplies 16 x 16 by 16 x 8 elements, 2048 products where a
// warp's fmaf is 32. What it takes from registers lies there as `ldmatrix` brings it, straight or
// transposed, so that an operand may have its rows or its columns side by side in memory. A block makes 128
// x 256 elements of C, a warp 64 x 64 of them. The tiles come four ahead, in 16-byte pieces whose places in
// shared memory are exchanged from row to row, so that neither what comes nor what is read meets in a bank.
// This is all that capability 8 has; on 9.0 the registers between shared memory and the tensor cores are
// what bounds it. On an H200 335 TFLOP/s of bfloat16 at 4096, 43 % of cuBLAS.
//
// Wider elements go the same way, fewer of them in the same bytes. Of float32 the instruction takes the
// sign, the exponent and 10 bits behind the point (tf32): a row of its own name, which is never a default.
// float64 it multiplies in full; a warp makes 32 x 64 elements there, whose sums fill its registers: 56
// TFLOP/s, 91 % of cuBLAS.
#include "ampere.cuh"
#include "matmul/fragments.cuh"
#include "matmul/matmul.cuh"

#define GK_MMA_ROWS 128 // of a block's tile of C
#define GK_MMA_COLUMNS 256
#define GK_MMA_COLUMNS_F64 128
#define GK_MMA_DEPTH 64 // bytes along K of the tiles of A and B
#define GK_MMA_STAGES 4
#define GK_MMA_THREADS 256
#define GK_MMA_ROW(variant, dtype, symbol, note, columns, ...)                                     \
    GK_ROW(matmul, variant, dtype, symbol, note, .tile_rows = GK_MMA_ROWS, .tile_columns = columns, .threads = GK_MMA_THREADS, .alignment = 16, \
           .capability = 80, .shared_bytes = GK_MMA_STAGES * (GK_MMA_ROWS + columns) * GK_MMA_DEPTH, __VA_ARGS__)
#define GK_MMA_NOTE "tensor cores: 16 x 16 x 8 products an instruction of a warp, accumulated in float32, rounded once"

GK_MMA_ROW(mma, float16, gk_matmul_mma_f16, GK_MMA_NOTE, GK_MMA_COLUMNS)
GK_MMA_ROW(mma, bfloat16, gk_matmul_mma_bf16, GK_MMA_NOTE, GK_MMA_COLUMNS)
GK_MMA_ROW(mma, float64, gk_matmul_mma_f64, "tensor cores: 16 x 4 x 8 products in float64 an instruction of a warp", GK_MMA_COLUMNS_F64)
GK_MMA_ROW(tf32, float32, gk_matmul_mma_tf32, "tensor cores: operands rounded to 11 significant bits, accumulated in float32; by its name alone",
           GK_MMA_COLUMNS, .named = true)

#ifndef GK_ROWS_ONLY
#ifdef GK_AMPERE

// What a block and a warp make of C, and how deep: tiles of 64 bytes along K, in two slices.
template <typename T> struct mma_shape {
    enum {
        WIDTH = 16 / sizeof(T), // elements of a piece
        DEPTH = GK_MMA_DEPTH / sizeof(T),
        SLICE = DEPTH / 2,
        COLUMNS = sizeof(T) == 8 ? GK_MMA_COLUMNS_F64 : GK_MMA_COLUMNS,
        DOWN = sizeof(T) == 8 ? 2 : 4, // fragments of 16 rows a warp
        WARPS_DOWN = GK_MMA_ROWS / 16 / DOWN,
        STAGE_BYTES = (GK_MMA_ROWS + COLUMNS) * GK_MMA_DEPTH,
    };
};

// A tile of lines, which are rows of A or columns of B, in shared memory, in pieces of 16 bytes. ALONG: a
// line's elements lie side by side, in 64 bytes; or else those of all lines at one depth do. Pieces that are
// read or written together lie in different banks.
template <typename T, int LINES, bool ALONG> struct mma_tile {
    enum { BYTES = LINES * GK_MMA_DEPTH, WIDTH = mma_shape<T>::WIDTH, APART = sizeof(T) > 2 ? 2 : 1 };

    // In bytes from the tile's start, of the piece that a line and a depth are in.
    __device__ static unsigned place(unsigned line, unsigned depth) {
        if (ALONG)
            return line * GK_MMA_DEPTH + (depth / WIDTH ^ (line / 2 % 2 * 2 + line / 4 % 2)) * 16;
        return depth * (LINES * (unsigned)sizeof(T)) + (line / WIDTH ^ depth * APART % 8) * 16;
    }
    __device__ static unsigned place_of_one(unsigned line, unsigned depth) {
        return place(line, depth) + (ALONG ? depth : line) % WIDTH * (unsigned)sizeof(T);
    }

    // A slice of 16 lines from there on: words 0 and 2 are of lines 0 to 7, 1 and 3 of lines 8 to 15; the
    // latter ones deeper, or a double's upper halves.
    __device__ static void load(uint32_t (&to)[4], unsigned tile, unsigned line, unsigned depth) {
        unsigned lane = threadIdx.x % GK_WARP, half = lane / 8 % 2, deep = lane / 16;
        if constexpr (sizeof(T) == 8) {
#pragma unroll
            for (int i = 0; i < 2; i++)
                gk_load_shared(to[i], to[i + 2], tile + place_of_one(line + lane / 4 + i * 8, depth + lane % 4));
        } else if constexpr (ALONG) {
            gk_load_matrices<false>(to, tile + place(line + lane % 16, depth + deep * WIDTH));
        } else if constexpr (sizeof(T) == 2) {
            gk_load_matrices<true>(to, tile + place(line + half * 8, depth + lane % 8 + deep * 8));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                to[i] = gk_load_shared(tile + place_of_one(line + lane / 4 + i % 2 * 8, depth + lane % 4 + i / 2 * 4));
        }
#pragma unroll
        for (int i = 0; i < 4 && sizeof(T) == 4; i++)
            to[i] = gk_round_to_tf32(to[i]);
    }
};

// What a thread fetches of each tile of an operand: a piece, and others as far apart as all threads reach.
template <typename T, int LINES, bool ALONG> struct mma_feed {
    typedef mma_tile<T, LINES, ALONG> tile;
    enum { WIDTH = tile::WIDTH, DEPTH = mma_shape<T>::DEPTH };
    enum { PIECES = tile::BYTES / 16 / GK_MMA_THREADS, ACROSS = (ALONG ? DEPTH : LINES) / WIDTH, APART = GK_MMA_THREADS / ACROSS };
    const T *from;
    size_t apart; // in elements
    unsigned line, depth, count, to;

    // `pitch`: of the axis that is not side by side; `lines`: so many are there from the tile's first one on.
    __device__ mma_feed(const T *first, size_t pitch, size_t lines) {
        unsigned across = threadIdx.x % ACROSS * WIDTH, down = threadIdx.x / ACROSS;
        line = ALONG ? down : across;
        depth = ALONG ? across : down;
        from = first + down * pitch + across;
        apart = APART * pitch;
        count = lines < LINES ? (unsigned)lines : LINES;
        to = tile::place(line, depth);
    }

    // Fetch the next tile, of which `deep` is there along K; what lies beyond an edge comes as zeros.
    __device__ void fetch(unsigned stage, unsigned deep) {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            unsigned l = line + (ALONG ? APART * i : 0), d = depth + (ALONG ? 0 : APART * i);
            unsigned left = l < count && d < deep ? (ALONG ? deep - d : count - l) : 0;
            gk_copy_16(stage + to + i * (GK_MMA_THREADS * 16), from + i * apart, left < WIDTH ? left * (unsigned)sizeof(T) : 16);
        }
        from += ALONG ? DEPTH : PIECES * apart;
    }
};

// A warp's part of the block's tile of C: sums of an instruction each, eight side by side.
template <typename T> struct mma_sums {
    typename gk_traits<T>::sum of[mma_shape<T>::DOWN][8][4];
};

// What a warp multiplies at once: a slice of its rows of A and of its 64 columns of B.
template <typename T> struct mma_slice {
    uint32_t a[mma_shape<T>::DOWN][4], b[4][4];
};
template <typename T, bool A_ALONG, bool B_ALONG>
__device__ static inline void load_slice(mma_slice<T> &slice, unsigned stage, unsigned row, unsigned column, unsigned depth) {
    typedef mma_tile<T, GK_MMA_ROWS, A_ALONG> tile_a;
    typedef mma_tile<T, mma_shape<T>::COLUMNS, B_ALONG> tile_b;
#pragma unroll
    for (int i = 0; i < mma_shape<T>::DOWN; i++)
        tile_a::load(slice.a[i], stage, row + 16 * i, depth);
#pragma unroll
    for (int i = 0; i < 4; i++)
        tile_b::load(slice.b[i], stage + tile_a::BYTES, column + 16 * i, depth);
}

// Rows in serpentine order: of the operands of an instruction one was the last one's too.
template <typename T> __device__ static inline void multiply_slice(mma_sums<T> &sum, const mma_slice<T> &slice) {
    enum { DOWN = mma_shape<T>::DOWN };
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int turn = 0; turn < DOWN; turn++) {
            int i = j % 2 ? DOWN - 1 - turn : turn;
            gk_multiply_warp(sum.of[i][j], slice.a[i], slice.b[j / 2][j % 2], slice.b[j / 2][j % 2 + 2], T());
        }
}

// While a slice is multiplied the next one is loaded, and tiles fetched that are needed in three steps.
template <typename T, bool A_ALONG, bool B_ALONG>
__device__ static inline void multiply_lines(mma_sums<T> &sum, mma_feed<T, GK_MMA_ROWS, A_ALONG> a, mma_feed<T, mma_shape<T>::COLUMNS, B_ALONG> b,
                                             size_t k, unsigned stages, unsigned row, unsigned column) {
    enum { STAGES = GK_MMA_STAGES, STAGE_BYTES = mma_shape<T>::STAGE_BYTES, DEPTH = mma_shape<T>::DEPTH, SLICE = mma_shape<T>::SLICE };
    mma_slice<T> slice[2];
    int64_t left = (int64_t)k; // to be fetched
    auto fetch = [&](unsigned stage) {
        if (left > 0) {
            unsigned deep = left < DEPTH ? (unsigned)left : DEPTH;
            a.fetch(stage, deep);
            b.fetch(stage + mma_tile<T, GK_MMA_ROWS, A_ALONG>::BYTES, deep);
        }
        left -= DEPTH;
        gk_copies_end();
    };
    auto after = [&](unsigned stage) {
        stage += STAGE_BYTES;
        return stage == stages + STAGES * STAGE_BYTES ? stages : stage;
    };
    unsigned now = stages, free = stages + (STAGES - 1) * STAGE_BYTES;
    for (unsigned stage = stages; stage != free; stage += STAGE_BYTES)
        fetch(stage);
    gk_copies_wait<STAGES - 2>();
    __syncthreads();
    load_slice<T, A_ALONG, B_ALONG>(slice[0], now, row, column, 0);
    while (left > -(STAGES - 1) * DEPTH) {
        load_slice<T, A_ALONG, B_ALONG>(slice[1], now, row, column, SLICE);
        fetch(free); // all have read it before they met at the last step's end
        multiply_slice<T>(sum, slice[0]);
        gk_copies_wait<STAGES - 2>(); // the next tiles are there
        __syncthreads();
        now = after(now), free = after(free);
        load_slice<T, A_ALONG, B_ALONG>(slice[0], now, row, column, 0); // behind the last step of nothing
        multiply_slice<T>(sum, slice[1]);
    }
}

template <typename T>
__device__ static inline void store_sums(T *c, const gk_product &of, size_t row, size_t column, const mma_sums<T> &sum) {
    unsigned lane = threadIdx.x % GK_WARP;
#pragma unroll
    for (int i = 0; i < mma_shape<T>::DOWN; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            size_t r = row + 16 * i + 8 * half + lane / 4;
#pragma unroll
            for (int j = 0; j < 8; j += 4)
                gk_store_sums(c + r * of.n, r < of.m, column + 8 * j, of.n, sum.of[i], j, 2 * half);
        }
}

template <typename T, bool A_ALONG, bool B_ALONG>
__device__ static inline void multiply_tile(T *c, const T *a, const T *b, const gk_product &of, size_t at) {
    enum { COLUMNS = mma_shape<T>::COLUMNS, WARPS_DOWN = mma_shape<T>::WARPS_DOWN };
    extern __shared__ __align__(128) unsigned char stages[];
    gk_corner corner = gk_grouped_corner(at, of.m, of.n, GK_MMA_ROWS, COLUMNS);
    unsigned warp = threadIdx.x / GK_WARP, row = warp % WARPS_DOWN * (16 * mma_shape<T>::DOWN), column = warp / WARPS_DOWN * 64;
    size_t a_pitch = A_ALONG ? of.a_row : of.a_column, b_pitch = B_ALONG ? of.b_column : of.b_row;
    mma_feed<T, GK_MMA_ROWS, A_ALONG> rows(a + corner.row * of.a_row, a_pitch, of.m - corner.row);
    mma_feed<T, COLUMNS, B_ALONG> columns(b + corner.column * of.b_column, b_pitch, of.n - corner.column);
    mma_sums<T> sum = {};
    multiply_lines<T, A_ALONG, B_ALONG>(sum, rows, columns, of.k, (unsigned)__cvta_generic_to_shared(stages), row, column);
    store_sums(c, of, corner.row + row, corner.column + column, sum);
}

template <typename T>
__device__ static inline void matmul_mma(T *c, const T *a, const T *b, const gk_product &of, size_t at) {
    if (of.a_column == 1 && of.b_column == 1)
        multiply_tile<T, true, false>(c, a, b, of, at);
    else if (of.a_column == 1)
        multiply_tile<T, true, true>(c, a, b, of, at);
    else if (of.b_column == 1)
        multiply_tile<T, false, false>(c, a, b, of, at);
    else
        multiply_tile<T, false, true>(c, a, b, of, at);
}

#define GK_MMA(symbol, T)                                                                          \
    extern "C" __global__ void __launch_bounds__(GK_MMA_THREADS, 1) symbol(T *c, const T *a, const T *b, gk_product of) { \
        size_t product = blockIdx.x / of.tiles;                                                    \
        matmul_mma(c + product * of.c_step, a + product * of.a_step, b + product * of.b_step, of, blockIdx.x % of.tiles); \
    }

#else

// Neither the simulator nor an older architecture has the instructions; the rows' capability says so.
#define GK_MMA(symbol, T) extern "C" __global__ void __launch_bounds__(GK_MMA_THREADS, 1) symbol(T *, const T *, const T *, gk_product) {}

#endif

GK_MMA(gk_matmul_mma_f16, float16)
GK_MMA(gk_matmul_mma_bf16, bfloat16)
GK_MMA(gk_matmul_mma_f64, double)
GK_MMA(gk_matmul_mma_tf32, float)

#endif
