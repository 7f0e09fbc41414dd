/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's init: waits until the guest is quiet, takes the job from the host, runs it, and turns the machine off.
 *
 * A run from a snapshot must count what a run from power-on counts. So nothing before the snapshot point looks at the job, and
 * nothing after it at how the guest came there.
 */
#include "agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOB_FILE "/job"
#define JOB_MAX_BYTES (1 << 20)

static void unknown_directive(const char *line)
{
    message("note", "the agent does not know the directive %s", line);
}

static void take_job(struct job *job)
{
    struct stream stream = job_stream();
    const char *wrong;
    char *text;
    int root;

    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    wrong = cpio_unpack(&stream, root);
    close(root);
    if (wrong)
        finish("bad-job %s", wrong);
    text = malloc(JOB_MAX_BYTES);
    if (!text || !read_file(JOB_FILE, text, JOB_MAX_BYTES))
        finish("bad-job the archive has no file named job");
    unlink(JOB_FILE);
    wrong = job_parse(text, job, unknown_directive);
    if (wrong)
        finish("bad-job %s", wrong);
}

int main(void)
{
    static struct job job;
    struct quiet quiet;

    if (getpid() != 1) {
        fputs("kdelta-agent: this is the init of kdelta's guests; elsewhere it would end all processes\n", stderr);
        return 1;
    }
    mounts_make();
    network_up();
    random_fill();
    group_make();
    load_run();
    quiet = quiet_wait();
    facts_send(&quiet);
    console("%s after %lld s: %llu context switches and %llu us of other tasks in the last second",
            quiet.reached ? "quiet" : "never quiet", (long long)quiet.seconds, (unsigned long long)quiet.switches,
            (unsigned long long)quiet.work_ns / 1000);
    snapshot_point();

    take_job(&job);
    modules_load(&job);
    date_set(&job);
    clocks_join();
    holes_unpacked();
    perturb(&job);
    mode_set(&job);
    console("running %s", job.argv[0]);
    run(&job);
}
