/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asm-generic/vmlinux.lds.h>
ENTRY(start)
SECTIONS
{
	. = 0x1000000;
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
	.notes : { *(.note.Xen) }
	.bss : { *(BSS_MAIN) }
	/DISCARD/ : { *(.comment .note.gnu.property .note.GNU-stack .eh_frame) }
}
