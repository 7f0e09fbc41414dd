/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inner loop for any machine. */
#include "frontend_state.h"

#define NAME(x) x##_portable
#define TARGET
#include "frontend_walk.h"
