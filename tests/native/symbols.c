/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the plugin's rules say of addresses: arguments are the files of rules and of symbols, then addresses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols.h"

int main(int argc, char **argv)
{
    uint64_t start = 0, end = 0;

    if (argc < 3 || !rules_load(argv[1]) || !symbols_load_file(argv[2]))
        return 1;
    bool image = symbols_image(&start, &end);

    printf("%d %d %" PRIx64 " %" PRIx64 "\n", symbols_known(), image, start, end);
    for (int i = 3; i < argc; i++) {
        uint64_t at = strtoull(argv[i], NULL, 16);

        printf("%x %d %d %d\n", symbols_flags_at(at), symbols_event_at(at), symbols_in_switch(at), symbols_in_return_text(at));
    }
    return 0;
}
