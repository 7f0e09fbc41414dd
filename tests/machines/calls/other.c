/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the calls' program starts: another program, at equal addresses. */
static volatile int sink;

__attribute__((noipa)) void k_other_leaf(void) { sink++; }

int main(void)
{
    for (volatile int i = 0; i < 3; i++)
        k_other_leaf();
    return 0;
}
