# SPDX-License-Identifier: GPL-2.0-or-later
"""How much is taken of what a guest, an image, an archive, a package or a file decides.

What is beyond is refused with a message that names the limit, or cut and reported. Each module has
the words for its own.
"""

KERNEL_FILES = 50_000
"""Files of a kernel package. A distribution's largest kernels have some 5,000 modules in 600 MB."""
KERNEL_BYTES = 8 << 30
"""All files of a kernel package together."""
ARCHIVE_BYTES = 16 << 30
"""All that an archive may unpack to; debug information of kernels takes some 5 GB."""
ARCHIVE_DEPTH = 64
"""Folders above a file. Modules have some 10; much deeper ones could not be removed again."""
SOURCE_FILES = 1_000_000
"""Entries of an archive of a source tree. Linux 6.12 has 87,000."""
SOURCE_BYTES = 16 << 30
"""What such an archive may unpack to. Linux 6.12 has 1.5 GB."""
HEADER_BYTES = 1 << 20
"""An extended header of an entry of a tar archive."""
NAME_BYTES = 4096
"""A name in a cpio archive; PATH_MAX of Linux."""
PACKED_IMAGE_BYTES = 512 << 20
"""What a packed kernel image unpacks to."""
DOWNLOAD_BYTES = 4 << 30
"""A kernel's largest packages, those of debug information, have 1 GiB."""
GUEST_FILES_BYTES = 512 << 20
"""Contents of files for a guest: they have to fit into its memory, twice while being unpacked."""
GUEST_FILES = 200_000
"""Files that a program asks for. Each costs a guest some 20,000 instructions before it starts."""
GUEST_OUTPUT_BYTES = 4 << 30
"""Each file that QEMU writes: counts, recordings, the console."""
CONSOLE_BYTES = 8 << 20
"""What a guest prints before it is ended."""
CPU_FILE_BYTES = 1 << 20
DEFAULTS_FILE_BYTES = 1 << 20
ORDER_FILE_BYTES = 64 << 20
GIVEN_LIST_BYTES = 8 << 20
"""A config or a list of patches. A distribution's config of 6.12 has 0.3 MB."""
GIVEN_FILE_BYTES = 256 << 20
"""A patch, a mailbox or a config, unpacked. From 6.11 to 6.12 the kernel's own has 70 MB."""
REPOSITORY_INDEX_BYTES = 1 << 20
"""What names the lists of an rpm repository."""
PACKAGE_ENTRY_BYTES = 8 << 20
"""What such a list says of one package."""
RPM_HEADER_BYTES = 256 << 20
RPM_TAGS = 0xFFFF
"""rpm's own limits (lib/header_internal.h) on what a header holds, and on its tags."""
UNPACKER_MEMORY_BYTES = 256 << 20
"""An unpacker would allocate what a header claims, up to 4 GiB; kernels need 64 MiB."""
META_PACKAGE_STEPS = 5
"""From a package that only depends on another to the one with a kernel."""
DEVICE_TREE_BYTES = 2 << 20
DEBUG_FILE_BYTES = 1 << 30
"""What a debuginfod server sends for one file."""
DEBUG_FILES_SECONDS = 60
"""For all files of a command; what is not there by then is done without."""
LINKS = 40
"""Symbolic links one after another; Linux, too, follows 40."""
SCRIPT_STEPS = 4
"""From a script to its interpreter, which may be a script; Linux, too, follows 4."""
TIMES_FILE_BYTES = 16 << 20
"""A file of times: of 128 operations, the most that a bundle takes, it has 2 MB."""
PRINTED_BYTES = 64 << 20
"""What a program prints while it is timed on this host."""

ITEMS_A_GIB = 1 << 28
"""Of a trace of executed blocks; each has 4 bytes."""
