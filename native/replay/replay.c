/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many layouts on many threads. */
#include "replay.h"

#include <pthread.h>
#include <stdatomic.h>

#include "worker.h"

#define MOST_THREADS 256

struct pool {
    const struct plan *plan;
    const struct replay_job *job;
    atomic_uint_fast64_t next;
    atomic_int status;
    pthread_mutex_t lock; /* of job->stats */
};

struct plan *replay_plan(const struct replay_trace *trace)
{
    return plan_new(trace);
}

void replay_free(struct plan *plan)
{
    plan_free(plan);
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    struct worker *w = calloc(1, sizeof *w);
    enum status status = w ? worker_init(w, pool->plan, pool->job) : NO_MEMORY;

    while (status == DONE && atomic_load(&pool->status) == DONE) {
        uint64_t layout = atomic_fetch_add(&pool->next, 1);

        if (layout >= pool->job->n_layouts)
            break;
        status = worker_layout(w, layout);
    }
    if (status != DONE)
        atomic_store(&pool->status, status);
    if (w) {
        pthread_mutex_lock(&pool->lock);
        for (int i = 0; i < STATS; i++)
            pool->job->stats[i] += w->stats[i];
        pthread_mutex_unlock(&pool->lock);
        worker_free(w);
    }
    free(w);
    return NULL;
}

/* The result is the same for any number of threads; if the system has fewer to give, they do it all. */
int replay_run(const struct plan *plan, const struct replay_job *job)
{
    struct pool pool = { .plan = plan, .job = job, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[MOST_THREADS];
    uint32_t started = 0, wanted = job->threads < MOST_THREADS ? job->threads : MOST_THREADS;

    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, &pool))
        started++;
    work(&pool);
    while (started)
        pthread_join(threads[--started], NULL);
    pthread_mutex_destroy(&pool.lock);
    return atomic_load(&pool.status);
}
