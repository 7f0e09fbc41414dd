/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two devices of the machine that the agent drives itself: pvpanic stops it for the snapshot, fw_cfg holds the job.
 *
 * fw_cfg by DMA copies synchronously, within the write of the port, so it takes no time of the guest's and none of the host's.
 * Ports: docs/specs/fw_cfg.rst and pvpanic.rst of QEMU.
 */
#include "agent.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kdelta_clock.h"

#define PVPANIC_PORT 0x505
#define PVPANIC_PANICKED 1

#define RESYNC_TICKS 12000000 /* more than the 10 ms between two timer ticks at the lowest HZ */

#define FW_CFG_PORT 0x510 /* selector; then data, then the DMA address, high half first, big-endian */
#define FW_CFG_PORTS 12
#define FW_CFG_DATA (FW_CFG_PORT + 1)
#define FW_CFG_DMA_HIGH (FW_CFG_PORT + 4)
#define FW_CFG_DMA_LOW (FW_CFG_PORT + 8)
#define FW_CFG_ID 0x0001
#define FW_CFG_ID_HAS_DMA 2
#define FW_CFG_DIRECTORY 0x0019
#define FW_CFG_JOB "opt/kdelta/job"

#define DMA_ERROR 1u
#define DMA_READ 2u

#define PAGE_BYTES 4096
#define WINDOW_PAGES 64

struct directory_entry {
    uint32_t size;
    uint16_t selector, reserved;
    char name[56];
};

struct dma {
    uint32_t control, length;
    uint64_t address;
};

/* A window through which the job passes; its last page holds the command. */
static uint8_t window[WINDOW_PAGES + 1][PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
static struct job_file {
    uint32_t left;
    bool dma;
} job_file;

void ports_open(void)
{
    if (ioperm(PVPANIC_PORT, 1, 1) || ioperm(FW_CFG_PORT, FW_CFG_PORTS, 1))
        finish("agent no access to I/O ports (CONFIG_X86_IOPL_IOPERM): %s", strerror(errno));
}

/* Tasks with port permissions are dearer to switch to, and children inherit them. */
void ports_close(void)
{
    ioperm(PVPANIC_PORT, 1, 0);
    ioperm(FW_CFG_PORT, FW_CFG_PORTS, 0);
}

/* The CPU stops at the write, but QEMU's main loop stops the clock a little later by the host's time, and in between it may find
 * the CPU idle and let the virtual clock jump to the next timer, which is at most a tick of the kernel away. So both paths,
 * with the jump and without, are led to one moment after that timer, from which on all is the same. */
void ports_snapshot_point(void)
{
    uint64_t meeting = __builtin_ia32_rdtsc() + RESYNC_TICKS;

    outb(PVPANIC_PANICKED, PVPANIC_PORT);
    kdelta_clock_burn_until(meeting);
}

static void read_data(void *to, size_t size)
{
    for (uint8_t *byte = to; size--; byte++)
        *byte = inb(FW_CFG_DATA);
}

/* Physical addresses of the window's pages. They are asked for anew each time, right before the copy: the kernel may move a
 * page, even a locked one. */
static bool find_pages(uint64_t physical[WINDOW_PAGES + 1])
{
    uint64_t present = 1ull << 63, frame = (1ull << 55) - 1;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t size = (WINDOW_PAGES + 1) * sizeof *physical;
    ssize_t got = fd < 0 ? -1 : pread(fd, physical, size, (off_t)((uintptr_t)window / PAGE_BYTES * sizeof *physical));

    if (fd >= 0)
        close(fd);
    if (got != (ssize_t)size)
        return false;
    for (int i = 0; i <= WINDOW_PAGES; i++) {
        if (!(physical[i] & present) || !(physical[i] & frame))
            return false;
        physical[i] = (physical[i] & frame) * PAGE_BYTES;
    }
    return true;
}

static bool read_dma(uint8_t *command_page, uint64_t command, uint64_t to, uint32_t size)
{
    volatile struct dma *dma = (volatile struct dma *)command_page;

    dma->control = htobe32(DMA_READ);
    dma->length = htobe32(size);
    dma->address = htobe64(to);
    outl(htobe32((uint32_t)(command >> 32)), FW_CFG_DMA_HIGH);
    outl(htobe32((uint32_t)command), FW_CFG_DMA_LOW);
    __asm__ volatile("" : : : "memory"); /* the window has changed */
    return !(be32toh(dma->control) & DMA_ERROR);
}

static bool fill(struct stream *stream)
{
    struct job_file *file = stream->source;
    uint64_t physical[WINDOW_PAGES + 1];
    uint32_t size = file->left < sizeof window - PAGE_BYTES ? file->left : sizeof window - PAGE_BYTES;

    file->dma = file->dma && find_pages(physical);
    if (!file->dma)
        read_data(window, size);
    for (uint32_t at = 0; file->dma && at < size; at += PAGE_BYTES) {
        uint32_t part = size - at < PAGE_BYTES ? size - at : PAGE_BYTES;

        if (!read_dma(window[WINDOW_PAGES], physical[WINDOW_PAGES], physical[at / PAGE_BYTES], part))
            return false;
    }
    file->left -= size;
    stream->data = window[0];
    stream->size = size;
    return size;
}

/* Makes a stream of the job's archive; false when the machine has none. */
bool ports_find_job(struct stream *stream)
{
    uint32_t id, n;
    struct directory_entry entry;

    outw(FW_CFG_ID, FW_CFG_PORT);
    read_data(&id, sizeof id); /* little-endian, as the only item */
    outw(FW_CFG_DIRECTORY, FW_CFG_PORT);
    read_data(&n, sizeof n);
    for (n = be32toh(n); n; n--) {
        read_data(&entry, sizeof entry);
        if (!strncmp(entry.name, FW_CFG_JOB, sizeof entry.name))
            break;
    }
    if (!n)
        return false;
    outw(be16toh(entry.selector), FW_CFG_PORT);
    job_file.left = be32toh(entry.size);
    job_file.dma = id & FW_CFG_ID_HAS_DMA && !mlock(window, sizeof window);
    memset(window, 0, sizeof window); /* so that each page is there */
    *stream = (struct stream){.fill = fill, .source = &job_file};
    return true;
}
