/* SPDX-License-Identifier: GPL-2.0-or-later */
const char linux_banner[] = "Linux version 6.12.99 (" BUILD_USER "@" BUILD_HOST ") #1 " BUILD_TIME "\n";
/* As WARN() and BUG() do, each kernel names its sources. */
const char made_of[] = __FILE__;
