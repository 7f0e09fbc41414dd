// SPDX-License-Identifier: GPL-2.0-or-later
// What gdb is to follow in the guest: three functions, a variable that changes, a call of the kernel, a thread.
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile int watched;

__attribute__((noinline)) long third(long value)
{
	long parent;

	watched = (int)value;
	__asm__ volatile(".globl before_call\nbefore_call:\tsyscall" : "=a"(parent) : "0"(SYS_getppid) : "rcx", "r11");
	return parent > 0;
}

__attribute__((noinline)) long second(long value)
{
	return third(value + 1) + 1;
}

__attribute__((noinline)) long first(long value)
{
	return second(value + 1) + 1;
}

static void *other(void *arg)
{
	watched = 99;
	return arg;
}

int main(void)
{
	pthread_t thread;
	unsigned segment;
	long value = first(40);

	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	__asm__ volatile("mov %%cs, %0" : "=r"(segment));
	printf("ring %u, value %ld, watched %d\n", segment & 3, value, watched);
	return 0;
}
