/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions, by halves: of Thumb-2 on ARM, of RISC-V with compressed ones, and of arm64, which has none of 16 bits. */
#ifndef INSNS_H
#define INSNS_H

#if defined(__arm__)

#define NOP 0xbf00
#define WIDE_NOP 0xf3af, 0x8000
#define LOAD 0x6803                /* ldr r3, [r0] */
#define STORE 0x6003               /* str r3, [r0] */
#define WIDE_LOAD 0xf8d0, 0x3000   /* ldr.w r3, [r0] */
#define WIDE_STORE 0xf8c0, 0x3000  /* str.w r3, [r0] */
#define LOAD_MANY 0xe890, 0x100e   /* ldmia.w r0, {r1-r3, ip} */
#define STORE_MANY 0xe880, 0x100e  /* stmia.w r0, {r1-r3, ip} */
#define EXCLUSIVE 0xe850, 0x3f00   /* ldrex r3, [r0] */
#define LOAD_VECTOR 0xf960, 0x078f /* vld1.32 {d16}, [r0] */
#define ON_CONDITION 0x2800, 0xbf18, 0x6803 /* cmp r0, #0; it ne; ldrne r3, [r0] */
#define SYSTEM_CALL 0x2714, 0xdf00 /* movs r7, #20 (getpid); svc 0 */
#define RET 0x4770

#elif defined(__aarch64__)

#define NOP 0x201f, 0xd503
#define WIDE_NOP NOP
#define LOAD 0x0003, 0xf940        /* ldr x3, [x0] */
#define STORE 0x0003, 0xf900       /* str x3, [x0] */
#define WIDE_LOAD LOAD
#define WIDE_STORE STORE
#define LOAD_MANY 0x0801, 0xa940   /* ldp x1, x2, [x0] */
#define STORE_MANY 0x0801, 0xa900  /* stp x1, x2, [x0] */
#define EXCLUSIVE 0x7c03, 0xc85f   /* ldxr x3, [x0] */
#define LOAD_VECTOR 0x7000, 0x4c40 /* ld1 {v0.16b}, [x0] */
#define ON_CONDITION 0x0043, 0xb400, 0x0003, 0xf940 /* cbz x3, .+8; ldr x3, [x0] */
#define SYSTEM_CALL 0x1588, 0xd280, 0x0001, 0xd400 /* mov x8, #172 (getpid); svc 0 */
#define RET 0x03c0, 0xd65f

#elif defined(__riscv)

#define NOP 0x0001
#define WIDE_NOP 0x0013, 0x0000
#define LOAD 0x6114                /* c.ld a3, 0(a0) */
#define STORE 0xe114               /* c.sd a3, 0(a0) */
#define WIDE_LOAD 0x3683, 0x0005   /* ld a3, 0(a0) */
#define WIDE_STORE 0x3023, 0x00d5  /* sd a3, 0(a0) */
#define LOAD_MANY 0x2687, 0x0005   /* flw fa3, 0(a0) */
#define STORE_MANY 0x2027, 0x00d5  /* fsw fa3, 0(a0) */
#define EXCLUSIVE 0x36af, 0x1005   /* lr.d a3, (a0) */
#define LOAD_VECTOR 0x3687, 0x0005 /* fld fa3, 0(a0) */
#define ON_CONDITION 0xc291, 0x6114 /* c.beqz a3, .+4; c.ld a3, 0(a0) */
#define SYSTEM_CALL 0x0893, 0x0ac0, 0x0073, 0x0000 /* li a7, 172 (getpid); ecall */
#define RET 0x8082

#endif

#endif
