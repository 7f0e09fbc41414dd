/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifdef __arm__
	.text
	.globl start
start:
	bl start_kernel
	b .

	.section .note.GNU-stack,"",%progbits
#else
	.section .note.Xen,"a",@note
	.long 4, 8, 18
	.asciz "Xen"
	.quad 0x1000000

	.text
	.globl start
start:
	call start_kernel
	hlt

	.section .note.GNU-stack,"",@progbits
#endif
