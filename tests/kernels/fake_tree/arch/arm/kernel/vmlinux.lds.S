/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asm-generic/vmlinux.lds.h>
ENTRY(start)
SECTIONS
{
	. = 0x80008000;
	.text : {
		_text = .;
		_stext = .;
		TEXT_TEXT
		_etext = .;
	}
	.rodata : { *(.rodata .rodata.*) }
	.init.text : {
		_sinittext = .;
		INIT_TEXT
		_einittext = .;
	}
	.data : { *(DATA_MAIN) _once = .; *(.data.once) *(.data.rel*) }
	.bss : { *(BSS_MAIN) }
	/DISCARD/ : { *(.comment .note.GNU-stack .ARM.exidx* .ARM.extab* .ARM.attributes) }
}
