/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A monitor of the QEMU that has loaded the plugin. */
#ifndef KDELTA_MONITOR_H
#define KDELTA_MONITOR_H

/* Execute a command of QMP's, written as JSON, on the monitor that listens on the Unix socket `path`; return once it is done. The calling
 * thread holds nothing that the main loop needs for it. Ends QEMU if it fails.
 */
void monitor_execute(const char *path, const char *command);

#endif
