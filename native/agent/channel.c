/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages to the host, by the marks of kdelta.h, and a few lines on the console for people. */
#include "agent.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "kdelta.h"

#define FILE_CHUNK_BYTES (64 << 10)

void message_start(const char *type)
{
    kdelta_send(type, strlen(type));
    kdelta_send("\n", 1);
}

void message_bytes(const void *bytes, size_t size)
{
    kdelta_send(bytes, size);
}

static void send_text(const char *format, va_list arguments)
{
    char text[4096];
    int size = vsnprintf(text, sizeof text, format, arguments);

    if (size > 0)
        kdelta_send(text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

void message_text(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    send_text(format, arguments);
    va_end(arguments);
}

/* Adds the file's first bytes to the message; returns how many. */
size_t message_file(const char *path, size_t limit_bytes)
{
    static char chunk[FILE_CHUNK_BYTES];
    size_t sent = 0;
    ssize_t size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && sent < limit_bytes && (size = read(fd, chunk, sizeof chunk)) > 0) {
        size_t part = limit_bytes - sent < (size_t)size ? limit_bytes - sent : (size_t)size;

        kdelta_send(chunk, part);
        sent += part;
    }
    if (fd >= 0)
        close(fd);
    return sent;
}

void message_end(void)
{
    KDELTA_MARK(KDELTA_MESSAGE);
}

void message(const char *type, const char *format, ...)
{
    va_list arguments;

    message_start(type);
    va_start(arguments, format);
    send_text(format, arguments);
    va_end(arguments);
    message_end();
}

static void print(const char *format, va_list arguments)
{
    char text[512];
    int size = vsnprintf(text, sizeof text - 1, format, arguments);

    if (size < 0)
        return;
    if ((size_t)size > sizeof text - 2)
        size = sizeof text - 2;
    text[size] = '\n';
    dprintf(STDERR_FILENO, "kdelta: %.*s", size + 1, text);
}

void console(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

/* The last message, and the end of the guest. */
void finish(const char *format, ...)
{
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    message_start("result");
    send_text(format, arguments);
    message_end();
    print(format, again);
    va_end(again);
    va_end(arguments);
    power_off();
}

/* Needs no driver of the kernel's, which may lack it: the host ends the machine. */
void power_off(void)
{
    tcdrain(STDERR_FILENO);
    KDELTA_MARK(KDELTA_OFF);
    for (;;)
        pause();
}
