# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections that the linker collects between two boundary symbols, and who walks them for what."""

import enum
import fnmatch
import functools

import msgspec


class SectionRole(enum.Enum):
    """What a record in such a section can do to code that executes.

    OWN: it says something about one function or variable (how to patch it, where its faults go), so
    it is part of that one. How many there are matters only to code that walks or searches them.
    KEEP: it is run, or makes something that later code finds (a parameter, a file, memory a CPU).
    NONE: no code of the kernel reads it.
    """

    OWN = "own"
    KEEP = "keep"
    NONE = "none"


class Walk(msgspec.Struct, frozen=True):
    """`walkers`: the functions whose path depends on how many records there are. `is_folded`: a
    record changes what the code does that it is about, without being implied by that code's bytes.
    """

    role: SectionRole
    why: str
    walkers: frozenset[str] = frozenset()
    is_folded: bool = False


def _own(why: str, *walkers: str) -> Walk:
    return Walk(SectionRole.OWN, why, frozenset(walkers))


def _folded(why: str, *walkers: str) -> Walk:
    return Walk(SectionRole.OWN, why, frozenset(walkers), is_folded=True)


_MODULES = ("load_module", "find_symbol", "resolve_symbol")
_PATCHING = (
    "apply_alternatives", "apply_retpolines", "apply_returns", "apply_seal_endbr",
    "apply_fineibt", "alternatives_smp_module_add", "alternatives_enable_smp",
    "alternatives_smp_lock", "alternatives_smp_unlock",
)  # fmt: skip
_KEYS = ("__jump_label_update", "jump_label_update", "jump_label_add_module")
_TRACING = ("ftrace_process_locs", "ftrace_replace_code", "ftrace_location_range", "lookup_rec")

# From include/asm-generic/vmlinux.lds.h and the code that uses its boundary symbols.
_WALKS: tuple[tuple[str, Walk], ...] = (
    ("__ex_table",
     _folded("faults are looked up in it", "search_extable", "search_exception_tables")),
    ("__bug_table", _folded("warnings are looked up in it", "find_bug", "report_bug")),
    ("__jump_table", _folded("static keys patch by it", *_KEYS)),
    (".static_call_sites", _folded("static calls patch by it", "__static_call_update")),
    (".static_call_tramp_key", _own("modules' static calls go by it", *_MODULES)),
    (".altinstructions", _folded("code is patched by it, at boot", *_PATCHING)),
    (".altinstr_replacement", _own("what code is patched with", *_PATCHING)),
    (".altinstr_aux", _own("jumped to from the code it belongs to")),
    (".smp_locks", _folded("LOCK prefixes are patched by it", *_PATCHING)),
    (".parainstructions", _folded("code is patched by it, at boot", *_PATCHING)),
    (".retpoline_sites", _own("code is patched by it, at boot", *_PATCHING)),
    (".return_sites", _own("code is patched by it, at boot", *_PATCHING)),
    (".call_sites", _own("code is patched by it, at boot", *_PATCHING)),
    (".ibt_endbr_seal", _own("code is patched by it, at boot", *_PATCHING)),
    (".cfi_sites", _own("code is patched by it, at boot", *_PATCHING)),
    ("runtime_ptr_*", _folded("code is patched by it, at boot")),
    ("runtime_shift_*", _folded("code is patched by it, at boot")),
    ("__mcount_loc", _own("where tracing patches", *_TRACING)),
    ("__patchable_function_entries", _own("where tracing patches", *_TRACING)),
    ("_kprobe_blacklist", Walk(SectionRole.KEEP, "memory is taken for each, at boot")),
    ("_error_injection_whitelist",
     _own("where errors may be injected", "within_error_injection_list")),
    # A lookup searches the few records of 256 bytes of code (arch/x86/kernel/unwind_orc.c): its
    # steps go with where code lies, never with how much of it is dead.
    (".orc_*", _own("stacks are unwound by it")),
    ("__tracepoints_ptrs", _own("all tracepoints", "for_each_kernel_tracepoint")),
    ("__tracepoints", _own("used by name", "for_each_kernel_tracepoint")),
    ("__tracepoints_strings", _own("names of tracepoints")),
    ("__bpf_raw_tp_map", _own("BPF looks tracepoints up in it", "bpf_get_raw_tracepoint")),
    (".export_symbol", _own("modules are linked by it", *_MODULES)),
    ("___ksymtab*", _own("modules are linked by it", *_MODULES)),
    ("__ksymtab*", _own("modules are linked by it", *_MODULES)),
    ("__kcrctab*", _own("modules are linked by it", *_MODULES)),
    (".init.setup", _own("boot options; who takes one executes", "obsolete_checksetup")),
    (".pci_fixup*", _own("fixups; one that applies executes", "pci_do_fixups")),
    (".data..percpu*", Walk(SectionRole.KEEP, "memory a CPU")),
    (".initcall*", Walk(SectionRole.KEEP, "run at boot")),
    (".con_initcall*", Walk(SectionRole.KEEP, "run at boot")),
    ("__param", Walk(SectionRole.KEEP, "parameters, made into files at boot")),
    ("_ftrace_events", Walk(SectionRole.KEEP, "trace events, made into files at boot")),
    ("_ftrace_eval_map", Walk(SectionRole.KEEP, "names for trace events, set up at boot")),
    ("(whole file)", Walk(SectionRole.KEEP, "not an object that can be read")),
    (".exitcall.exit", Walk(SectionRole.NONE, "never run in what is built in")),
)  # fmt: skip

_UNKNOWN = Walk(SectionRole.KEEP, "who reads it is not known")


@functools.cache
def walk_of(section: str) -> Walk:
    """What is known of a collected section; one that nothing is known of counts as kept."""
    found = (walk for pattern, walk in _WALKS if fnmatch.fnmatchcase(section, pattern))
    return next(found, _UNKNOWN)
