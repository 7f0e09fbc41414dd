// SPDX-License-Identifier: GPL-2.0-or-later
// Who may: the directory and the prctl want both capabilities of the first user namespace; 32-bit programs are refused.
#include "calls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>

#define NO_NAMESPACES 100

static void drop(int one)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &head, data);
	for (int i = 0; i < 2; i++) {
		unsigned gone = one < 0 ? ~0u : one / 32 == i ? 1u << one % 32 : 0;

		data[i].effective &= ~gone;
		data[i].permitted &= ~gone;
	}
	syscall(SYS_capset, &head, data);
}

/* The results of the prctl, and of writing the directory, to somebody who is as `become` makes him. */
static void refused(const char *name, void (*become)(void))
{
	char full[64];
	int status;
	pid_t pid = fork();

	if (!pid) {
		become();
		if (!prctl(PR_KERNEL_MODE, KERNEL_MODE_ENTER, 0, 0, 0) || errno != EPERM)
			_exit(1);
		int file = open(DIRECTORY, O_WRONLY);

		if (file < 0)
			_exit(errno == EACCES || errno == EPERM ? 0 : 2);
		_exit(write(file, "/tmp\n", 5) < 0 && errno == EPERM ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	snprintf(full, sizeof(full), "refused-%s", name);
	if (WEXITSTATUS(status) == NO_NAMESPACES)
		skip(full, "no user namespaces in this kernel");
	else
		check(full, status == 0, "status %x", status);
}

static void nobody(void)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(9);
}

static void without_all(void) { drop(-1); }
static void without_admin(void) { drop(CAP_SYS_ADMIN); }
static void without_module(void) { drop(CAP_SYS_MODULE); }

static void root_of_another_namespace(void)
{
	if (unshare(CLONE_NEWUSER) || put("/proc/self/setgroups", "deny") ||
	    put("/proc/self/uid_map", "0 0 1") || put("/proc/self/gid_map", "0 0 1"))
		_exit(errno == EINVAL ? NO_NAMESPACES : 8);
}

/* An ELF header for i386, and `mov $1, %al; int $0x80` behind it. */
static void write_program_32(const char *path)
{
	static const unsigned char program[] = {
		0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0,
		0x54, 0x80, 4, 8, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x34, 0, 0x20, 0, 1, 0, 0, 0,
		0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 4, 8, 0, 0x80, 4, 8, 0x60, 0, 0, 0,
		0x60, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
		0x31, 0xc0, 0x40, 0xb3, 42, 0xcd, 0x80, 0xf4, 0, 0, 0, 0 };
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	if (write(file, program, sizeof(program)) != sizeof(program))
		check("program-32", 0, "not written");
	close(file);
}

/* 1000 + its exit code, or the error of exec. */
static int run_32(const char *path)
{
	volatile int error = 0;
	int status;
	pid_t pid = vfork();

	if (!pid) {
		execl(path, path, NULL);
		error = errno;
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return error ? error : 1000 + WEXITSTATUS(status);
}

static int read_directory(char *to, size_t size)
{
	FILE *file = fopen(DIRECTORY, "r");

	if (!file)
		return 0;
	if (!fgets(to, (int)size, file))
		*to = 0;
	to[strcspn(to, "\n")] = 0;
	fclose(file);
	return 1;
}

int main(void)
{
	char before[256] = "", after[256] = "";

	begin();
	mkdir("/user", 0755);
	write_program_32("/user/program-32");
	write_program_32("/kernel/program-32");
	int outside = run_32("/user/program-32"), inside = run_32("/kernel/program-32");

	fact("program-32", "%s", outside == 1042 ? "runs" : "does not run here at all");
	check("program-32-inside", inside == (kernel_mode() ? ENOEXEC : outside), "%d, outside %d", inside,
	      outside);
	if (!read_directory(before, sizeof(before))) {
		check("no-directory", errno == ENOENT, "%s", strerror(errno));
		check("no-prctl", prctl(PR_KERNEL_MODE, KERNEL_MODE_GET, 0, 0, 0) == -1 && errno == EINVAL,
		      "errno %d", errno);
		return finish();
	}
	refused("nobody", nobody);
	refused("without-capabilities", without_all);
	refused("without-admin", without_admin);
	refused("without-module", without_module);
	refused("root-of-another-namespace", root_of_another_namespace);
	check("relative-is-refused", put(DIRECTORY, "tmp\n") == -EINVAL, "%d", put(DIRECTORY, "tmp\n"));
	read_directory(after, sizeof(after));
	check("as-before", !strcmp(before, after), "%s, not %s", after, before);
	if (!kernel_mode())
		check("entries-are-refused",
		      prctl(PR_KERNEL_MODE, KERNEL_MODE_ENTRIES, before, 0, 0) == -1 && errno == EPERM, "errno %d",
		      errno);
	else
		check("entries-nowhere",
		      prctl(PR_KERNEL_MODE, KERNEL_MODE_ENTRIES, 8, 0, 0) == -1 && errno == EFAULT, "errno %d", errno);
	return finish();
}
