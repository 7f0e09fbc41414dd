// SPDX-License-Identifier: GPL-2.0-or-later
// fork, vfork and exec: the mode is inherited by children, and decided again by each program's place. Into user mode and back.
#include "calls.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>

extern char **environ;
static char own[256], outside[] = "/user/exec-proof", inside[] = "/kernel/exec-proof-copy";

static void copy(const char *to)
{
	char piece[4096];
	ssize_t got;
	int from = open(own, O_RDONLY), file = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	while ((got = read(from, piece, sizeof(piece))) > 0)
		if (write(file, piece, got) != got)
			check("copy", 0, "%s", strerror(errno));
	close(from);
	close(file);
}

/* What the mode is after this chain of programs: '0' user, '1' kernel; -1 if it did not end well. */
static int mode_after(char *const *chain)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execv(chain[0], chain);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) - 10 : -status;
}

static void expect_mode(const char *name, int wanted, char *const *chain)
{
	int got = mode_after(chain);

	check(name, got == wanted, "%d, not %d", got, wanted);
}

static int child_mode(long flags, enum way way)
{
	int status;
	pid_t pid = call6(way, SYS_clone, flags | SIGCHLD, 0, 0, 0, 0, 0);

	if (!pid)
		_exit(10 + kernel_mode());
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status) - 10;
}

static void forks(enum way way)
{
	int mode = kernel_mode(), status, at_first = 1, sum = 0;

	check_way(way, "fork", child_mode(0, way) == mode, "another mode");
	check_way(way, "clone-of-files", child_mode(CLONE_FILES | CLONE_FS, way) == mode, "another mode");
	for (int i = 0; i < 50; i++) {
		pid_t pid = call0(way, SYS_fork);

		if (!pid)
			_exit(i);
		waitpid(pid, &status, 0);
		sum += WEXITSTATUS(status);
	}
	check_way(way, "forks", sum == 50 * 49 / 2, "%d", sum);
	char *const chain[] = { own, "--say", NULL };
	volatile int *shared = &at_first;
	pid_t pid = vfork();

	if (!pid) {
		*shared = 2;
		call3(way, SYS_execve, own, chain, environ);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	check_way(way, "vfork-and-exec", *shared == 2 && WEXITSTATUS(status) - 10 == mode, "%d, status %x",
		  *shared, status);
}

static void places(void)
{
	int mode = kernel_mode(), status;
	pid_t pid;

	expect_mode("exec", mode, (char *[]){ own, "--say", NULL });
	expect_mode("exec-outside", 0, (char *[]){ outside, "--say", NULL });
	expect_mode("exec-inside", mode, (char *[]){ inside, "--say", NULL });
	expect_mode("outside-and-back", mode, (char *[]){ outside, "--exec", own, "--say", NULL });
	expect_mode("outside-and-back-and-outside", 0,
		    (char *[]){ outside, "--exec", own, "--exec", outside, "--say", NULL });
	symlink(outside, "/kernel/link-to-outside");
	symlink(own, "/user/link-to-inside");
	expect_mode("link-to-outside", 0, (char *[]){ "/kernel/link-to-outside", "--say", NULL });
	expect_mode("link-to-inside", mode, (char *[]){ "/user/link-to-inside", "--say", NULL });
	mkdir("/kernelish", 0755);
	copy("/kernelish/program");
	expect_mode("like-its-name", 0, (char *[]){ "/kernelish/program", "--say", NULL });
	expect_mode("by-dots", 0, (char *[]){ "/kernel/../user/exec-proof", "--say", NULL });
	FILE *script = fopen("/user/script", "w");

	fprintf(script, "#!%s --say\n", own);
	fclose(script);
	chmod("/user/script", 0755);
	expect_mode("script-with-it", mode, (char *[]){ "/user/script", NULL });
	if (!posix_spawn(&pid, own, NULL, NULL, (char *[]){ own, "--say", NULL }, environ))
		waitpid(pid, &status, 0);
	check("spawn", WEXITSTATUS(status) - 10 == mode, "status %x", status);
	if (chdir("/kernel") || (pid = fork()) == 0) {
		char *const chain[] = { "exec", "--say", NULL };

		syscall(SYS_execveat, AT_FDCWD, "exec", chain, environ, 0);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	check("relative", WEXITSTATUS(status) - 10 == mode, "status %x", status);
}

/* Into another mode and back without exec, thread by thread. */
static void by_prctl(void)
{
	long mode = prctl(PR_KERNEL_MODE, KERNEL_MODE_GET, 0, 0, 0);

	if (mode < 0) {
		skip("prctl", "not in this kernel");
		return;
	}
	check("prctl-get", mode == kernel_mode(), "%ld", mode);
	for (int i = 0; i < 100; i++) {
		long left = prctl(PR_KERNEL_MODE, KERNEL_MODE_LEAVE, 0, 0, 0);

		if (left || kernel_mode())
			check("prctl-leave", 0, "%ld", left);
		left = prctl(PR_KERNEL_MODE, KERNEL_MODE_ENTER, 0, 0, 0);
		if (left || !kernel_mode())
			check("prctl-enter", 0, "%ld", left);
	}
	check("prctl-child-inherits", child_mode(0, WAY_SYSCALL) == 1, "no");
	char *const chain[] = { outside, "--say", NULL };

	check("prctl-does-not-outlive-exec", mode_after(chain) == 0, "it does");
	check("prctl-wrong", prctl(PR_KERNEL_MODE, 77, 0, 0, 0) == -1 && errno == EINVAL, "%d", errno);
	if (!mode)
		prctl(PR_KERNEL_MODE, KERNEL_MODE_LEAVE, 0, 0, 0);
	check("prctl-as-before", kernel_mode() == mode, "%d", kernel_mode());
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--say"))
		return 10 + kernel_mode();
	if (argc > 2 && !strcmp(argv[1], "--exec")) {
		execv(argv[2], argv + 2);
		return 98;
	}
	begin();
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return 1;
	mkdir("/user", 0755);
	copy(outside);
	copy(inside);
	for (int way = 0; way < ways(); way++)
		forks(way);
	places();
	by_prctl();
	return finish();
}
