// The least that NumPy arrays take through a GPU: a bare program in place of a library. Workers, each with
// a stream of its own, copy chunks into pinned buffers, from where the device fetches them, adds them up
// and sends results straight into pinned memory. host_arrays.py compiles it, tries its settings, and holds
// gpukern against the best of them.
//
//     nvcc -O3 -std=c++17 -arch=native -Xcompiler -fPIC,-pthread -shared -o libstaged.so staged.cu
#include <cuda_runtime.h>
#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));    \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

enum { SLOTS = 3, OPERANDS = 2, BUFFERS = OPERANDS + 1 };

__global__ void add(float4 *out, const float4 *a, const float4 *b, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}

__global__ void exponential(float4 *out, const float4 *a, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = make_float4(expf(a[i].x), expf(a[i].y), expf(a[i].z), expf(a[i].w));
}

// Past the caches: lines that are overwritten whole have not to be read first.
static void copy_past_caches(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) {
        __m128i x[4];
        for (int k = 0; k < 4; k++)
            x[k] = _mm_loadu_si128((const __m128i *)(from + i) + k);
        for (int k = 0; k < 4; k++)
            _mm_stream_si128((__m128i *)(to + i) + k, x[k]);
    }
    _mm_sfence();
}

struct Slot {
    char *pinned, *device;
    cudaEvent_t done;
};

struct Staged {
    size_t chunk;
    bool streaming;
    std::vector<std::thread> threads;
    std::vector<cudaStream_t> streams;
    std::vector<Slot> slots;
    char *pinned, *device;
    std::mutex lock;
    std::condition_variable wake, ended;
    std::function<void(int)> job;
    unsigned round = 0;
    int running = 0;
    bool closing = false;

    Staged(int workers, size_t chunk, bool streaming) : chunk(chunk), streaming(streaming) {
        size_t count = (size_t)workers * SLOTS, each = BUFFERS * chunk;
        CHECK(cudaMallocHost(&pinned, count * each));
        CHECK(cudaMalloc(&device, count * each));
        streams.resize(workers);
        slots.resize(count);
        for (cudaStream_t &stream : streams)
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (size_t i = 0; i < count; i++) {
            slots[i] = {pinned + i * each, device + i * each, nullptr};
            CHECK(cudaEventCreateWithFlags(&slots[i].done, cudaEventDisableTiming));
        }
        for (int i = 1; i < workers; i++)
            threads.emplace_back([this, i] { serve(i); });
    }

    ~Staged() {
        {
            std::lock_guard<std::mutex> guard(lock);
            closing = true;
        }
        wake.notify_all();
        for (std::thread &thread : threads)
            thread.join();
        for (Slot &slot : slots)
            CHECK(cudaEventDestroy(slot.done));
        for (cudaStream_t stream : streams)
            CHECK(cudaStreamDestroy(stream));
        CHECK(cudaFree(device));
        CHECK(cudaFreeHost(pinned));
    }

    void serve(int number) {
        std::unique_lock<std::mutex> held(lock);
        for (unsigned seen = 0;;) {
            wake.wait(held, [&] { return closing || round != seen; });
            if (closing)
                return;
            seen = round;
            held.unlock();
            job(number);
            held.lock();
            if (--running == 0)
                ended.notify_one();
        }
    }

    void on_all(std::function<void(int)> work) {
        {
            std::lock_guard<std::mutex> guard(lock);
            job = std::move(work);
            running = (int)threads.size();
            round++;
        }
        wake.notify_all();
        job(0);
        std::unique_lock<std::mutex> held(lock);
        ended.wait(held, [&] { return running == 0; });
    }

    void stage(char *to, const char *from, size_t bytes) const {
        if (streaming && bytes % 64 == 0)
            copy_past_caches(to, from, bytes);
        else
            std::memcpy(to, from, bytes);
    }

    // result: NULL, or pinned; operands: as many as are not NULL.
    void pass(const char *a, const char *b, char *result, size_t bytes) {
        std::atomic<size_t> next{0};
        on_all([&](int worker) {
            cudaStream_t stream = streams[worker];
            for (unsigned turn = 0;; turn++) {
                size_t first = next.fetch_add(chunk);
                if (first >= bytes)
                    break;
                size_t some = std::min(chunk, bytes - first), count = some / sizeof(float4);
                const Slot &at = slots[worker * SLOTS + turn % SLOTS];
                char *out = at.device + 2 * chunk;
                CHECK(cudaEventSynchronize(at.done));
                stage(at.pinned, a + first, some);
                CHECK(cudaMemcpyAsync(at.device, at.pinned, some, cudaMemcpyHostToDevice, stream));
                if (b) {
                    stage(at.pinned + chunk, b + first, some);
                    CHECK(cudaMemcpyAsync(at.device + chunk, at.pinned + chunk, some, cudaMemcpyHostToDevice, stream));
                }
                CHECK(cudaEventRecord(at.done, stream));
                unsigned blocks = (unsigned)((count + 255) / 256);
                if (b)
                    add<<<blocks, 256, 0, stream>>>((float4 *)out, (float4 *)at.device, (float4 *)(at.device + chunk), count);
                else if (result)
                    exponential<<<blocks, 256, 0, stream>>>((float4 *)out, (float4 *)at.device, count);
                if (result)
                    CHECK(cudaMemcpyAsync(result + first, out, some, cudaMemcpyDeviceToHost, stream));
            }
            CHECK(cudaStreamSynchronize(stream));
        });
        CHECK(cudaGetLastError());
    }
};

extern "C" {
void *staged_open(int workers, size_t chunk, int streaming) {
    return new Staged(workers, chunk, streaming != 0);
}
void staged_close(void *staged) {
    delete (Staged *)staged;
}
void staged_add(void *staged, const char *a, const char *b, char *result, size_t bytes) {
    ((Staged *)staged)->pass(a, b, result, bytes);
}
void staged_exp(void *staged, const char *a, char *result, size_t bytes) {
    ((Staged *)staged)->pass(a, nullptr, result, bytes);
}
void staged_in(void *staged, const char *a, size_t bytes) {
    ((Staged *)staged)->pass(a, nullptr, nullptr, bytes);
}
void *pinned_new(size_t bytes) {
    void *memory;
    CHECK(cudaMallocHost(&memory, bytes));
    std::memset(memory, 0, bytes);
    return memory;
}
void pinned_free(void *memory) {
    CHECK(cudaFreeHost(memory));
}

// The least of a small call: a kernel that reads and writes pinned memory in place.
void mapped_add(char *pinned, const char *a, const char *b, char *result, size_t bytes, cudaStream_t stream) {
    std::memcpy(pinned, a, bytes);
    std::memcpy(pinned + bytes, b, bytes);
    size_t count = bytes / sizeof(float4);
    add<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>((float4 *)(pinned + 2 * bytes), (float4 *)pinned, (float4 *)(pinned + bytes), count);
    CHECK(cudaStreamSynchronize(stream));
    std::memcpy(result, pinned + 2 * bytes, bytes);
}
// That many bytes each way at once, pinned memory all along: the bus alone.
void both_ways(void *staged, char *in, char *out, size_t bytes) {
    Staged *of = (Staged *)staged;
    size_t some = std::min(bytes, of->slots.size() * BUFFERS * of->chunk / 2);
    for (size_t first = 0; first < bytes; first += some) {
        size_t count = std::min(some, bytes - first);
        CHECK(cudaMemcpyAsync(of->device, in + first, count, cudaMemcpyHostToDevice, of->streams[0]));
        CHECK(cudaMemcpyAsync(out + first, of->device + some, count, cudaMemcpyDeviceToHost, of->streams[1]));
    }
    CHECK(cudaStreamSynchronize(of->streams[0]));
    CHECK(cudaStreamSynchronize(of->streams[1]));
}
void *stream_new(void) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}
}
