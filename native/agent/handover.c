/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's snapshot, and the job that the host hands over after it. */
#include "agent.h"

#include "kdelta_handover.h"

void snapshot_point(void)
{
    kdelta_snapshot();
}

static bool fill(struct stream *stream)
{
    stream->size = kdelta_next_piece(&stream->data);
    if (stream->size > KDELTA_PIECE_MAX_BYTES)
        finish("agent the host did not answer: kdelta's plugin is missing");
    return stream->size;
}

struct stream job_stream(void)
{
    return (struct stream){.fill = fill};
}
