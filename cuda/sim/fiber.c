#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE, MAP_STACK */
#include "fiber.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ASan's redzones round every local make frames several times as large. */
#ifdef GK_SIM_ASAN
enum { STACK_BYTES = 256 * 1024 };
#else
enum { STACK_BYTES = 64 * 1024 };
#endif
enum { SWITCH_WORDS = 24 }; /* at least what the switch below pops */

#ifndef GK_SIM_UCONTEXT
/* ucontext does the same with a system call, 14 times slower. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl gk_sim_switch\n"
        ".hidden gk_sim_switch\n"
        ".type gk_sim_switch, %function\n"
        "gk_sim_switch:\n"
#ifdef __x86_64__
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
#else
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
#endif
        ".size gk_sim_switch, .-gk_sim_switch\n");
#endif

void gk_sim_fiber_reset(gk_sim_fiber *fiber, void (*entry)(void)) {
#ifdef GK_SIM_ASAN
    /* Frames that were abandoned have left their redzones behind. */
    __asan_unpoison_memory_region(fiber->low, fiber->bytes);
    fiber->fake_stack = NULL;
#endif
#ifdef GK_SIM_UCONTEXT
    getcontext(&fiber->saved);
    fiber->saved.uc_stack.ss_sp = fiber->low;
    fiber->saved.uc_stack.ss_size = (size_t)(fiber->top - fiber->low);
    fiber->saved.uc_link = NULL;
    makecontext(&fiber->saved, entry, 0);
    fiber->context = &fiber->saved;
#else
    uintptr_t *words = (uintptr_t *)fiber->top - SWITCH_WORDS;
    memset(words, 0, SWITCH_WORDS * sizeof *words);
#ifdef __x86_64__
    /* Popped by ret, which leaves the stack as a call does: 16 n + 8. */
    words[6] = (uintptr_t)entry;
#else
    words[11] = (uintptr_t)entry; /* x30 */
#endif
    fiber->context = words;
#endif
}

bool gk_sim_slab_map(gk_sim_fiber *fibers, unsigned number) {
    size_t guard = (size_t)sysconf(_SC_PAGESIZE), stride = STACK_BYTES + guard;
    char *slab = mmap(NULL, stride * GK_SIM_FIBERS_A_SLAB, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab == MAP_FAILED)
        return false;
    for (unsigned i = 0; i < GK_SIM_FIBERS_A_SLAB; i++) {
        gk_sim_fiber *fiber = fibers + i;
        fiber->low = slab + i * stride + guard;
        fiber->bytes = STACK_BYTES;
        /* Tops at one offset in their pages would share a few cache sets; these do not. */
        size_t colour = (number * GK_SIM_FIBERS_A_SLAB + i) * 320 % 4096;
        fiber->top = fiber->low + STACK_BYTES - colour / 64 * 64;
        /* Without a guard, where the system has no mappings left, the stack still works. */
        (void)mprotect(fiber->low - guard, guard, PROT_NONE);
    }
    return true;
}

void gk_sim_slab_unmap(gk_sim_fiber *fibers) {
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
#ifdef GK_SIM_ASAN
    /* The system hands the addresses out again, to memory that has no frames. */
    for (int i = 0; i < GK_SIM_FIBERS_A_SLAB; i++)
        __asan_unpoison_memory_region(fibers[i].low, fibers[i].bytes);
#endif
    munmap(fibers->low - guard, (STACK_BYTES + guard) * GK_SIM_FIBERS_A_SLAB);
}
