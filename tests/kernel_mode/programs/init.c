// SPDX-License-Identifier: GPL-2.0-or-later
// The guest's init: runs the steps of /plan one after the other, and says on ttyS1 how each ended.
//
// A line of /plan: DIRECTORY SECONDS NAME COMMAND..., where DIRECTORY is what is written into
// kernel_mode_directory before ("-": nothing, and the command runs in user mode).
#include "proof.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define WORDS 64

static FILE *report;

static void mounts(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/tmp", 01777);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/shm", 01777);
	mkdir("/dev/pts", 0755);
	mkdir("/dev/mqueue", 0755);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	mount("devpts", "/dev/pts", "devpts", 0, NULL);
	mount("mqueue", "/dev/mqueue", "mqueue", 0, NULL);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	put("/proc/sys/kernel/core_pattern", "/tmp/core");
	put("/proc/sys/kernel/printk", "7 4 1 7");
}

/* Raw, so that nothing is added to what is reported. */
static void plain(const char *path)
{
	int file = open(path, O_RDWR | O_NOCTTY);

	if (file < 0)
		return;
	/* TCGETS and TCSETS of the kernel's own struct: all flags off but CS8, CREAD, CLOCAL, B115200. */
	struct { unsigned in, out, control, local; unsigned char line, cc[19]; } settings = {
		.control = 0x1002 | 060 | 0200 | 04000 };

	settings.cc[6] = 1;
	syscall(SYS_ioctl, file, 0x5402, &settings);
	close(file);
}

static void start(const char *directory, char **argv)
{
	static const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int kernel = strcmp(directory, "-") != 0;

	setsid();
	chdir("/tmp");
	setrlimit(RLIMIT_CORE, &all);
	setenv("PROOF_MODE", kernel ? "kernel" : "user", 1);
	setenv("PATH", "/bin:/usr/bin:/sbin:/usr/sbin:/usr/local/bin", 1);
	setenv("HOME", "/tmp", 1);
	dup2(fileno(report), 1);
	dup2(fileno(report), 2);
	execv(argv[0], argv);
	fprintf(report, "not ok start: %s: %s\n", argv[0], strerror(errno));
	fflush(report);
	_exit(127);
}

static void run(char *line)
{
	char *directory = strtok(line, " \n"), *seconds = strtok(NULL, " \n");
	char *name = strtok(NULL, " \n"), *argv[WORDS + 1] = { NULL };
	struct timespec limit = { 0 };
	sigset_t child;
	int status = 0, error, ended = 0;
	double begun = now();

	for (int i = 0; i < WORDS && (argv[i] = strtok(NULL, " \n")); i++)
		;
	if (!argv[0])
		return;
	fprintf(report, "@@ start %s\n", name);
	fflush(report);
	error = put(DIRECTORY, strcmp(directory, "-") ? directory : "\n");
	if (error && strcmp(directory, "-"))
		fprintf(report, "not ok directory: %s\n", strerror(-error));
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	pid_t pid = fork();

	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		start(directory, argv);
	}
	for (double left; !ended && (left = begun + atoi(seconds) - now()) > 0;) {
		limit.tv_sec = (long)left;
		limit.tv_nsec = (long)((left - (long)left) * 1e9);
		sigtimedwait(&child, NULL, &limit);
		for (pid_t one; !ended && (one = waitpid(-1, &status, WNOHANG)) > 0;)
			ended = one == pid;
	}
	kill(-1, SIGKILL);
	while (!ended && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (int tries = 0; tries < 100 && (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD); tries++)
		usleep(10000);
	if (!ended)
		fprintf(report, "\n@@ end %s timeout %.1f\n", name, now() - begun);
	else if (WIFSIGNALED(status))
		fprintf(report, "\n@@ end %s signal-%d %.1f\n", name, WTERMSIG(status), now() - begun);
	else
		fprintf(report, "\n@@ end %s exit-%d %.1f\n", name, WEXITSTATUS(status), now() - begun);
	fflush(report);
}

int main(void)
{
	char line[4096];
	FILE *plan;

	mounts();
	plain("/dev/ttyS1");
	report = fopen("/dev/ttyS1", "w");
	plan = fopen("/plan", "r");
	if (!report || !plan)
		return 1;
	while (fgets(line, sizeof(line), plan))
		run(line);
	fprintf(report, "@@ all\n");
	fflush(report);
	fsync(fileno(report));
	sleep(1);
	reboot(RB_AUTOBOOT);
	return 0;
}
