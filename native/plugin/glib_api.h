/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of GLib that kdelta uses, its main loop and arrays of bytes; QEMU is linked with GLib, whose headers may be missing. */
#ifndef KDELTA_GLIB_API_H
#define KDELTA_GLIB_API_H

typedef struct glib_source glib_source;
typedef struct glib_context glib_context;

/* GSourceFuncs */
struct glib_source_functions {
    int (*prepare)(glib_source *source, int *timeout_ms); /* before the loop waits for events */
    int (*check)(glib_source *source);                    /* when it has waited */
    int (*dispatch)(glib_source *source, int (*callback)(void *data), void *data);
    void (*finalize)(glib_source *source);
    void (*unused[2])(void);
};

glib_source *g_source_new(struct glib_source_functions *functions, unsigned int source_bytes);
void g_source_set_priority(glib_source *source, int priority);
unsigned int g_source_attach(glib_source *source, glib_context *context);

/* GByteArray */
typedef struct {
    unsigned char *data;
    unsigned int len;
} glib_byte_array;

glib_byte_array *g_byte_array_new(void);
glib_byte_array *g_byte_array_set_size(glib_byte_array *array, unsigned int size);

/* GArray */
typedef struct {
    char *data;
    unsigned int len;
} glib_array;

char *g_array_free(glib_array *array, int free_data);

#endif
