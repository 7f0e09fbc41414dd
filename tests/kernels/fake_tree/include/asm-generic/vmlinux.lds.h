/* SPDX-License-Identifier: GPL-2.0-or-later */
#define TEXT_MAIN .text
#define DATA_MAIN .data
#define BSS_MAIN .bss

#define NOINSTR_TEXT							\
		__noinstr_text_start = .;				\
		*(.noinstr.text)					\
		__noinstr_text_end = .;

#define TEXT_TEXT							\
		*(.text.hot .text.hot.*)				\
		*(TEXT_MAIN .text.fixup)				\
		*(.text.unlikely .text.unlikely.*)			\
		NOINSTR_TEXT

#define INIT_TEXT							\
		*(.init.text .init.text.*)				\
		*(.text.startup)
