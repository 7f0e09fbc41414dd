/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file systems that programs expect, the console, and the loopback interface. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *type, *path, *options;
    mode_t mode;
} mounts[] = {
    {"proc", "/proc", "", 0555},
    {"sysfs", "/sys", "", 0555},
    {"devtmpfs", "/dev", "mode=0755", 0755},
    {"tmpfs", "/dev/shm", "mode=1777", 01777},
    {"tmpfs", "/tmp", "mode=1777", 01777},
    {"tmpfs", "/run", "mode=0755", 0755},
    {"tmpfs", OUTPUT_FOLDER, "mode=0755,size=16m,nr_inodes=16", 0755},
};

static void console_open(void)
{
    int fd = open("/dev/console", O_RDWR);

    if (fd < 0)
        return; /* the messages still reach the host */
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    if (fd > 2)
        close(fd);
}

void mounts_make(void)
{
    umask(0);
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        mkdir(mounts[i].path, mounts[i].mode);
        if (mount(mounts[i].type, mounts[i].path, mounts[i].type, 0, mounts[i].options) && errno != EBUSY)
            message("note", "%s on %s: %s", mounts[i].type, mounts[i].path, strerror(errno));
    }
    umask(022);
    symlink("/proc/self/fd", "/dev/fd");
    console_open();
}

void network_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
        message("note", "no loopback network: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* What a kernel does for the first connection since its boot: it fills a table with random numbers, of 256 KiB for TCP, which is some
 * 6 million instructions (inet_hash_connect), and draws secrets. No port is open, so nothing else of it stays.
 */
void network_first_use(void)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    struct sockaddr_in of_4 = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 of_6 = {.sin6_family = AF_INET6, .sin6_port = htons(1), .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        bool is_6 = i % 2;
        int fd = socket(is_6 ? AF_INET6 : AF_INET, types[i / 2] | SOCK_CLOEXEC, 0);

        if (fd < 0)
            continue; /* the kernel lacks it */
        if (!connect(fd, is_6 ? (void *)&of_6 : (void *)&of_4, is_6 ? sizeof of_6 : sizeof of_4))
            send(fd, "", 1, MSG_NOSIGNAL);
        close(fd);
    }
}
