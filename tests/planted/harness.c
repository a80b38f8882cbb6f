/* Launch a planted kernel on the simulator:
     harness KERNEL [blocks] [threads] [dynamic shared bytes]
   where blocks and threads are as 4 or as 2x3x4, and say "right" if each block's elements came out
   reversed, "wrong: ..." or "error: ...".
     harness threads | fork
     harness KERNEL blocks threads bytes SECOND [times]
   does the same from many threads at once, in the child of a fork, or after a failed launch, or
   again and again. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/sim/backend.h"
#include "device/registry.h"

typedef struct launch_shape {
    unsigned grid[3], block[3];
    size_t shared;
} launch_shape;

static gk_backend *device;

/* Memory out of the simulator, filled with 0, 1, 2... or with nothing. */
static float *elements(size_t count, bool filled, gk_error *error) {
    void *memory = NULL;
    float *host = malloc(count * sizeof *host);
    for (size_t i = 0; host && i < count; i++)
        host[i] = (float)i;
    if (!host || device->allocate(device, count * sizeof *host, 0, &memory, error) ||
        (filled && device->copy_in(device, memory, host, count * sizeof *host, 0, error)))
        fprintf(stderr, "no memory: %s\n", error->text);
    free(host);
    return memory;
}

/* One line about one launch. */
static gk_status run(const char *name, launch_shape shape, char *line, size_t size) {
    gk_error error = {0};
    size_t blocks = (size_t)shape.grid[0] * shape.grid[1] * shape.grid[2];
    size_t threads = (size_t)shape.block[0] * shape.block[1] * shape.block[2];
    size_t count = blocks * threads;
    if (count > 1 << 20)
        count = 1 << 20; /* for launches that are refused */
    size_t bytes = count * sizeof(float);
    float *in = elements(count, true, &error), *out = elements(count, false, &error);
    gk_row row = {.variant = name, .symbol = name};
    void *arguments[] = {&out, &in, &count};
    gk_launch launch = {
        .row = &row,
        .grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
        .block = {shape.block[0], shape.block[1], shape.block[2]},
        .shared_bytes = shape.shared,
        .arguments = arguments,
    };
    float *host = malloc(bytes + 1);
    snprintf(line, size, "right");
    if (device->launch(device, &launch, &error) ||
        device->copy_out(device, host, out, bytes, 0, &error)) {
        snprintf(line, size, "error: %s", error.text);
    } else {
        for (size_t i = 0; i < count; i++) {
            size_t t = i % threads;
            float expected = (float)(i - t + threads - 1 - t);
            if (host[i] != expected) {
                snprintf(line, size, "wrong: out[%zu] is %g, not %g; out[0] is %g", i,
                         (double)host[i], (double)expected, (double)host[0]);
                break;
            }
        }
    }
    free(host);
    device->release(device, in, 0);
    device->release(device, out, 0);
    return error.status;
}

static void *many(void *result) {
    launch_shape shape = {{40, 1, 1}, {64, 1, 1}, 0};
    char line[1200];
    for (int i = 0; i < 100; i++) {
        run(i % 10 == 3 ? "divergent" : "reverse", shape, line, sizeof line);
        if (strncmp(line, i % 10 == 3 ? "error: divergent" : "right", 5) != 0)
            *(const char **)result = strdup(line);
    }
    return NULL;
}

static const char *from_threads(void) {
    pthread_t threads[8];
    const char *results[8];
    for (int i = 0; i < 8; i++) {
        results[i] = "right";
        pthread_create(threads + i, NULL, many, results + i);
    }
    const char *result = "right";
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        if (strcmp(results[i], "right") != 0)
            result = results[i];
    }
    return result;
}

static const char *in_a_child(void) {
    launch_shape shape = {{400, 1, 1}, {64, 1, 1}, 0};
    char line[1200];
    run("reverse", shape, line, sizeof line); /* starts the helpers that the child will miss */
    pid_t child = fork();
    if (!child) {
        alarm(60);
        const char *again = "right";
        many(&again);
        run("reverse", shape, line, sizeof line);
        device->close(device);
        _exit(strcmp(line, "right") != 0 || strcmp(again, "right") != 0);
    }
    int status;
    waitpid(child, &status, 0);
    run("reverse", shape, line, sizeof line);
    return status == 0 && strcmp(line, "right") == 0 ? "right" : "wrong";
}

/* "4", or "2x3x4". */
static void read_lengths(const char *text, unsigned lengths[3]) {
    (void)sscanf(text, "%ux%ux%u", &lengths[0], &lengths[1], &lengths[2]);
}

int main(int count, char **arguments) {
    gk_error error;
    if (count < 2 || gk_backend_sim_open(&device, 0, &error)) {
        printf("error: %s\n", count < 2 ? "no kernel named" : error.text);
        return 1;
    }
    launch_shape shape = {{4, 1, 1}, {64, 1, 1}, 0};
    if (count > 2)
        read_lengths(arguments[2], shape.grid);
    if (count > 3)
        read_lengths(arguments[3], shape.block);
    if (count > 4)
        shape.shared = strtoul(arguments[4], NULL, 10);
    char line[1200];
    if (strcmp(arguments[1], "threads") == 0)
        puts(from_threads());
    else if (strcmp(arguments[1], "fork") == 0)
        puts(in_a_child());
    else if (run(arguments[1], shape, line, sizeof line), puts(line), count > 5)
        for (int i = count > 6 ? atoi(arguments[6]) : 1; i > 0; i--)
            run(arguments[5], shape, line, sizeof line), puts(line);
    device->close(device);
    return 0;
}
