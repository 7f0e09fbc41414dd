/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the guest's CPUs executes.
 *
 * With thread=single, QEMU calls a block's callback with the number of the CPU for which it translated the block, whichever executes it.
 * What does say it is the register of the host in which translated code keeps the address of its CPU's state (TCG_AREG0 in QEMU's
 * sources), and which a called function finds as it was.
 */
#include "cpus.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "memory.h"

unsigned n_cpus = 1;

static cpus_block_callback *at_block;
static void (*at_change)(unsigned index);
static uintptr_t executes, states[MOST_CPUS]; /* addresses of CPUs' states, in the order in which they first executed anything */
static unsigned n_states;

static _Noreturn void refuse(const char *why)
{
    fprintf(stderr, "kdelta plugin: %s\n", why);
    _exit(1);
}

static unsigned index_of(uintptr_t state)
{
    unsigned i = 0;

    while (i < n_states && states[i] != state)
        i++;
    if (i == n_states) {
        if (n_states == n_cpus)
            refuse("more CPUs execute code than the guest has");
        states[n_states++] = state;
    }
    return i;
}

LOCAL void cpus_at_block(void *data, uintptr_t state);
void cpus_at_block(void *data, uintptr_t state)
{
    if (__builtin_expect(state != executes, 0)) {
        executes = state;
        at_change(index_of(state));
    }
    at_block(0, data);
}

#if defined __x86_64__

static __attribute__((naked)) void with_state(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    __asm__("mov %rsi, %rdi\n\t"
            "mov %rbp, %rsi\n\t"
            "jmp cpus_at_block");
}

#else

static void with_state(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    refuse("several CPUs of a guest are distinguished on x86-64 hosts alone");
}

#endif

void cpus_set(unsigned n)
{
    if (n < 1 || n > MOST_CPUS)
        refuse("a guest has 1 to 64 CPUs");
    n_cpus = n;
}

cpus_block_callback *cpus_callback(cpus_block_callback *callback, void (*changed)(unsigned index))
{
    if (n_cpus == 1)
        return callback;
    at_block = callback;
    at_change = changed;
    return with_state;
}
