/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs whose regions have odd names, and that send the messages of kdelta's agent. */
#define _GNU_SOURCE
#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>

static void good(void) { region("getppid"); }
static void star(void) { region("*all"); }
static void star_alone(void) { region("*"); }
static void no_name(void) { region(""); }
static void name_escapes(void) { region(ESCAPES); }
static void name_lines(void) { region("a\n\nregion b\n\tc\r\n"); }
static void name_separators(void) { region("a\xe2\x80\xa8" "b\xe2\x80\xa9" "c\xc2\x85"); }
static void name_invalid(void) { region("\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"); }
static void name_path(void) { region("../../../../tmp/HOSTILE"); }
static void name_markup(void) { region("<script>alert(1)</script>[bold red]x[/]%s%n{0}\"'`$(touch /tmp/HOSTILE)"); }

/* --- names of regions --- */

static void name_longest(void)
{
    static char name[256];

    memset(name, 0xff, 255);
    region(name);
}

static void name_too_long(void)
{
    static char name[70000];

    memset(name, '\x1b', sizeof name - 1);
    region(name);
}

static void many_names(void)
{
    char name[32];

    for (int i = 0; i < 9000; i++) {
        snprintf(name, sizeof name, "\x1b[2Jn\n%d", i);
        kdelta_begin(name);
        kdelta_end();
    }
}

/* --- messages of the agent --- */

static void lies(void)
{
    say("result\nexit 0\n");
    exit(3);
}

static void lies_and_off(void)
{
    region("a");
    say("result\nexit 0 " ESCAPES);
    KDELTA_MARK(KDELTA_OFF);
    forever();
}

static void clock_lies(void)
{
    region("a");
    say("region-clock\na -1 1\na nan nan\na 99999999999999999999999999999999 1\nb\n\xff\xff 1 1\na 1 2 3 4\n\n" ESCAPES " 1 1\n");
}

static void symbol_lies(void)
{
    region("a");
    say("kallsyms\nzzzz T a\nffffffffffffffffffff T b\n-1 T c\n0 T " ESCAPES "\nffffffff81000000 T \n\n\xff\n");
}

static void fact_lies(void)
{
    region("a");
    say("cpuinfo\n" ESCAPES "\nflags : \xff\nmodel name\t: " ESCAPES "\n");
    say("vulnerabilities\n" ESCAPES);
    say("hello\nrelease " ESCAPES "\nmachine x\ncmdline " ESCAPES "\nquiet no\nquiet_seconds zzz\n");
    say("group\n" ESCAPES);
    say("kernel-log\n" ESCAPES);
    say("note\n" ESCAPES);
    say("memory\n99999999999999999999999999 " ESCAPES);
    say("many-regions\n" ESCAPES);
    say("environment\n\xff=" ESCAPES);
    say("arguments\n" ESCAPES);
}

static void module_lies(void)
{
    region("a");
    say("vdso\nnot an ELF file");
    say("vdso\n\x7f" "ELF\x02\x01\x01 and what lies");
    say("modules\n" ESCAPES " 99999999999999999999999 1 - Live 0xzz\nx -1 0 - Live 0xffffffffffffffffffff\n");
    say("packets\na -1 -1\na x y\n" ESCAPES);
}

static void failure_lies(void)
{
    say("failure\n" ESCAPES);
    say("warning\n" ESCAPES);
    say("overflow\n" ESCAPES);
    say("stdout\n" ESCAPES);
    say("stderr\n" ESCAPES);
    exit(3);
}

static void type_lies(void)
{
    static char type[1 << 20];

    region("a");
    say("");
    say("\n");
    say("../../../tmp/HOSTILE\nx");
    say("/tmp/HOSTILE\nx");
    say(ESCAPES "\nx");
    memset(type, 'x', sizeof type - 1);
    say(type);
    for (int i = 0; i < 20000; i++) {
        snprintf(type, 32, "type-%d\nx", i);
        say(type);
    }
}

static void warnings(void)
{
    region("a");
    for (int i = 0; i < 100000; i++)
        say("warning\nHOSTILE " ESCAPES "\n");
}

const struct kind message_kinds[] = {
    {"good", good}, {"star", star}, {"star-alone", star_alone}, {"no-name", no_name}, {"name-escapes", name_escapes},
    {"name-lines", name_lines}, {"name-separators", name_separators}, {"name-invalid", name_invalid},
    {"name-path", name_path}, {"name-markup", name_markup}, {"name-longest", name_longest},
    {"name-too-long", name_too_long}, {"many-names", many_names}, {"lies", lies}, {"lies-and-off", lies_and_off},
    {"clock-lies", clock_lies}, {"symbol-lies", symbol_lies}, {"fact-lies", fact_lies}, {"module-lies", module_lies},
    {"failure-lies", failure_lies}, {"type-lies", type_lies}, {"warnings", warnings}, {NULL, NULL},
};
