/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A front end under many layouts on many threads. */
#include "frontend_state.h"

#include <pthread.h>
#include <stdatomic.h>

#define MOST_THREADS 256

struct pool {
    const struct frontend_plan *plan;
    const struct frontend_job *job;
    atomic_uint_fast64_t next;
    atomic_int status;
};

static void walk(struct front *f)
{
#ifdef __x86_64__
    if (!(f->job->flags & PORTABLE) && __builtin_cpu_supports("avx2")) {
        front_walk_avx2(f);
        return;
    }
#endif
    front_walk_portable(f);
}

/* A pass that leaves everything as the measured one finds it, and that one. */
static enum status replay_layout(struct front *f, uint64_t index)
{
    const struct frontend_job *job = f->job;
    uint64_t ignored[EVENTS * CONTEXTS];
    enum status status = front_place(f, job->layouts + index * job->n_functions);

    if (status != DONE)
        return status;
    if (job->flags & WARM) {
        f->total = ignored;
        memset(ignored, 0, sizeof ignored);
        f->by_function = NULL;
        walk(f);
    }
    f->total = job->total + index * EVENTS * CONTEXTS;
    f->by_function = job->by_function ? job->by_function + index * EVENTS * job->n_functions : NULL;
    walk(f);
    return DONE;
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    struct front *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
    enum status status = NO_MEMORY;

    if (f) {
        memset(f, 0, sizeof *f);
        status = front_init(f, pool->plan, pool->job);
    }
    while (status == DONE && atomic_load(&pool->status) == DONE) {
        uint64_t layout = atomic_fetch_add(&pool->next, 1);

        if (layout >= pool->job->n_layouts)
            break;
        status = replay_layout(f, layout);
    }
    if (status != DONE)
        atomic_store(&pool->status, status);
    if (f)
        front_free(f);
    free(f);
    return NULL;
}

int frontend_run(const struct frontend_plan *plan, const struct frontend_job *job)
{
    struct pool pool = { .plan = plan, .job = job };
    pthread_t threads[MOST_THREADS];
    uint32_t started = 0, wanted = job->threads < MOST_THREADS ? job->threads : MOST_THREADS;

    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, &pool))
        started++;
    work(&pool);
    while (started)
        pthread_join(threads[--started], NULL);
    return atomic_load(&pool.status);
}
