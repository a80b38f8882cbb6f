// cuRAND's generators for kernels: XORWOW and Philox4x32-10, with the numbers that cuRAND gives.
#ifndef GK_SIM_CURAND_KERNEL_H
#define GK_SIM_CURAND_KERNEL_H

extern "C" void gk_sim_xorwow_skip(uint32_t v[5], uint64_t count, int are_sequences);

// XORWOW (Marsaglia 2003) -------------------------------------------------------------------------

struct curandStateXORWOW {
    unsigned d, v[5];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

static inline unsigned curand(curandStateXORWOW_t *state) {
    unsigned t = state->v[0] ^ (state->v[0] >> 2);
    for (int i = 0; i < 4; i++)
        state->v[i] = state->v[i + 1];
    state->v[4] = (state->v[4] ^ (state->v[4] << 4)) ^ (t ^ (t << 1));
    state->d += 362437;
    return state->v[4] + state->d;
}

static inline void gk_sim_skip(curandStateXORWOW_t *state, unsigned long long n, int sequences) {
    unsigned v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
    gk_sim_xorwow_skip(v, n, sequences);
    for (int i = 0; i < 5; i++)
        state->v[i] = v[i];
}
static inline void skipahead(unsigned long long n, curandStateXORWOW_t *state) {
    gk_sim_skip(state, n, 0);
    state->d += 362437 * (unsigned)n;
}
static inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state) {
    gk_sim_skip(state, n, 1); // d comes back to itself
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStateXORWOW_t *state) {
    unsigned t0 = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
    unsigned t1 = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
    *state = {6615241 + t1 + t0,
              {123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0},
              0,
              0,
              0.0f,
              0.0};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

// Philox4x32-10 (Salmon and others 2011) ----------------------------------------------------------

struct curandStatePhilox4_32_10 {
    uint4 ctr, output;
    uint2 key;
    unsigned STATE;
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

static inline uint4 gk_sim_philox(uint4 c, uint2 key) {
    for (int i = 0; i < 10; i++) {
        unsigned low0 = 0xd2511f53u * c.x, high0 = __umulhi(0xd2511f53u, c.x);
        unsigned low1 = 0xcd9e8d57u * c.z, high1 = __umulhi(0xcd9e8d57u, c.z);
        c = make_uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
        key.x += 0x9e3779b9u;
        key.y += 0xbb67ae85u;
    }
    return c;
}

// The counter has 128 bits: sequences are in the upper half.
static inline void gk_sim_count_on(curandStatePhilox4_32_10_t *state, unsigned long long n) {
    unsigned long long low = (unsigned long long)state->ctr.y << 32 | state->ctr.x;
    unsigned long long high = (unsigned long long)state->ctr.w << 32 | state->ctr.z;
    unsigned long long sum = low + n;
    high += sum < low;
    state->ctr =
        make_uint4((unsigned)sum, (unsigned)(sum >> 32), (unsigned)high, (unsigned)(high >> 32));
}

static inline unsigned curand(curandStatePhilox4_32_10_t *state) {
    unsigned at = state->STATE++;
    uint4 four = state->output;
    if (state->STATE == 4) {
        gk_sim_count_on(state, 1);
        state->output = gk_sim_philox(state->ctr, state->key);
        state->STATE = 0;
    }
    return at == 0 ? four.x : at == 1 ? four.y : at == 2 ? four.z : four.w;
}
static inline uint4 curand4(curandStatePhilox4_32_10_t *state) {
    unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
    return make_uint4(x, y, z, w);
}

static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    state->STATE += (unsigned)(n & 3);
    n /= 4;
    if (state->STATE > 3) {
        n++;
        state->STATE -= 4;
    }
    gk_sim_count_on(state, n);
    state->output = gk_sim_philox(state->ctr, state->key);
}
static inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    unsigned long long high = ((unsigned long long)state->ctr.w << 32 | state->ctr.z) + n;
    state->ctr.z = (unsigned)high;
    state->ctr.w = (unsigned)(high >> 32);
    state->output = gk_sim_philox(state->ctr, state->key);
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, curandStatePhilox4_32_10_t *state) {
    *state = {};
    state->key = make_uint2((unsigned)seed, (unsigned)(seed >> 32));
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

// distributions -----------------------------------------------------------------------------------

static inline float gk_sim_uniform(unsigned x) {
    return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f);
}
static inline double gk_sim_uniform(unsigned x, unsigned y) {
    unsigned long long bits = (unsigned long long)x ^ ((unsigned long long)y << 21);
    return bits * 1.1102230246251565e-16 + (1.1102230246251565e-16 / 2.0);
}
static inline float2 gk_sim_normal(unsigned x, unsigned y) {
    float u = gk_sim_uniform(x);
    float v = y * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f * 6.2831855f / 2.0f);
    float s = sqrtf(-2.0f * logf(u));
    return make_float2(s * sinf(v), s * cosf(v));
}

template <typename S> static inline float curand_uniform(S *state) {
    return gk_sim_uniform(curand(state));
}
static inline double curand_uniform_double(curandStateXORWOW_t *state) {
    unsigned x = curand(state);
    return gk_sim_uniform(x, curand(state));
}
static inline double curand_uniform_double(curandStatePhilox4_32_10_t *state) {
    return curand(state) * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}
template <typename S> static inline float2 curand_normal2(S *state) {
    unsigned x = curand(state);
    return gk_sim_normal(x, curand(state));
}
// Of two numbers that are made at once the second one is kept for the next call of the same kind.
enum gk_sim_kept { GK_SIM_KEPT_NORMAL = 1, GK_SIM_KEPT_LOG_NORMAL };
template <typename S> static inline float curand_normal(S *state) {
    bool is_kept = state->boxmuller_flag == GK_SIM_KEPT_NORMAL;
    state->boxmuller_flag = is_kept ? 0 : GK_SIM_KEPT_NORMAL;
    if (is_kept)
        return state->boxmuller_extra;
    float2 both = curand_normal2(state);
    state->boxmuller_extra = both.y;
    return both.x;
}
template <typename S> static inline float curand_log_normal(S *state, float mean, float deviation) {
    bool is_kept = state->boxmuller_flag == GK_SIM_KEPT_LOG_NORMAL;
    state->boxmuller_flag = is_kept ? 0 : GK_SIM_KEPT_LOG_NORMAL;
    if (is_kept)
        return state->boxmuller_extra;
    float2 both = curand_normal2(state);
    state->boxmuller_extra = expf(mean + deviation * both.y);
    return expf(mean + deviation * both.x);
}
template <typename S> static inline double2 curand_normal2_double(S *state) {
    unsigned x = curand(state), y = curand(state);
    double u = gk_sim_uniform(x, y), sine, cosine, s = sqrt(-2.0 * log(u));
    x = curand(state);
    y = curand(state);
    sincospi(2.0 * gk_sim_uniform(x, y), &sine, &cosine);
    return make_double2(s * sine, s * cosine);
}
template <typename S> static inline double curand_normal_double(S *state) {
    bool is_kept = state->boxmuller_flag_double == GK_SIM_KEPT_NORMAL;
    state->boxmuller_flag_double = is_kept ? 0 : GK_SIM_KEPT_NORMAL;
    if (is_kept)
        return state->boxmuller_extra_double;
    double2 both = curand_normal2_double(state);
    state->boxmuller_extra_double = both.y;
    return both.x;
}
static inline float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
    uint4 x = curand4(state);
    return make_float4(gk_sim_uniform(x.x), gk_sim_uniform(x.y), gk_sim_uniform(x.z),
                       gk_sim_uniform(x.w));
}
static inline float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
    uint4 x = curand4(state);
    float2 a = gk_sim_normal(x.x, x.y), b = gk_sim_normal(x.z, x.w);
    return make_float4(a.x, a.y, b.x, b.y);
}

#endif
