# SPDX-License-Identifier: GPL-2.0-or-later
"""What /proc/cpuinfo has of some machines: the lines of it that tell which core they have.

Written from the form in which Linux prints it (arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/
cpuinfo.c), with the numbers and names of these machines; features are left out but for those that
matter.
"""


def x86(vendor: str, family: int, model: int, name: str, flags: str = "fpu") -> str:
    """Two processors of x86."""
    fields = (
        f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: {name}\nstepping\t: 1\nflags\t\t: {flags}\n"
    )
    return "".join(f"processor\t: {at}\n{fields}\n" for at in range(2))


def arm(*parts: int, variant: int = 0) -> str:
    """A processor of Arm's for each part, and the line that a board's file ends in."""
    fields = (
        "BogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        f"CPU variant\t: {variant:#x}\nCPU part\t: "
    )
    every = (f"processor\t: {at}\n{fields}{part:#x}\n\n" for at, part in enumerate(parts))
    return "".join(every) + "Serial\t\t: 0\n"


TURIN = x86("AuthenticAMD", 26, 2, "AMD EPYC 9655 96-Core Processor")
GENOA = x86("AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor")
GRANITE_RAPIDS = x86("GenuineIntel", 6, 173, "Intel(R) Xeon(R) 6980P")
SIERRA_FOREST = x86("GenuineIntel", 6, 175, "Intel(R) Xeon(R) 6780E")
SKYLAKE_SERVER = x86("GenuineIntel", 6, 85, "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz")
HIDDEN = x86(
    "GenuineIntel", 6, 167, "Intel(R) Xeon(R) Processor", "hypervisor amx_tile avx512_bf16"
)
"""A Sapphire Rapids whose numbers a hypervisor made up."""
HASWELL = x86("GenuineIntel", 6, 60, "Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz")
ALTRA = arm(0xD0C, 0xD0C, variant=3)
GRAVITON4 = arm(0xD4F, 0xD4F)
PI5 = arm(0xD0B, 0xD0B, variant=4)
RK3588 = arm(0xD05, 0xD05, 0xD0B, 0xD0B)
NEOVERSE_N2 = arm(0xD49)
RISCV = "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: sifive,u54\n"
