# SPDX-License-Identifier: GPL-2.0-or-later
"""Source spec -> kernel: patched, configured, built, and kept with the record of how."""

import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from kdelta.host.cache import Pruning, limit_bytes, prune_cache
from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import expanded, lab_errors, make_folder, sha256_file, write_json
from kdelta.host.in_use import use
from kdelta.host.lock import locked, locked_if_free
from kdelta.host.machine import cores
from kdelta.host.manifest import published_folder
from kdelta.kernels.arches import KernelArch, kernel_arch
from kdelta.kernels.config.configure import ConfigFailed, ConfigStep, Configured, configure
from kdelta.kernels.config.kconfig import Config, modules_of, parse_config
from kdelta.kernels.config.lab_config import lab_options
from kdelta.kernels.config.named_files import missing_files
from kdelta.kernels.config.reasons import refusal_text
from kdelta.kernels.kbuild.built import (
    DEPENDENCIES,
    DIGEST,
    DTBS,
    LOG,
    RECORD,
    VMLINUX,
    BuiltKernel,
    Memo,
    built_folder,
    load_built,
)
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.kbuild.kbuild import Kbuild, install_modules
from kdelta.kernels.kbuild.linked_map import linked_map
from kdelta.kernels.kbuild.relink import (
    Relink,
    link_words,
    orders_in_the_middle,
    relink_of,
    relinkable,
    relinking_variables,
)
from kdelta.kernels.kbuild.toolchain import Toolchain, toolchain
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.objects.dependencies import dependencies_of, save_dependencies
from kdelta.kernels.objects.digest import Digest, digest_of
from kdelta.kernels.objects.digest_file import is_current, load_digest, save_digest
from kdelta.kernels.packages.image import hash_modules
from kdelta.kernels.packages.inspect import banner_of
from kdelta.kernels.sources.given import ReadChanges, given_lines, order_notes, read_changes
from kdelta.kernels.sources.mode_series import (
    FRAGMENT_NAME,
    kernel_mode_fragment,
    must_have_kernel_mode,
)
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import Source, checked_out, has_kernel_mode, source_of
from kdelta.spec.change import (
    AllowUnknownChange,
    BaseConfigChange,
    FileChange,
    OptionChange,
    VariableChange,
)
from kdelta.spec.identity import identity
from kdelta.spec.kernel import SourceSpec, TreeSpec
from kdelta.spec.note import SpecNote
from kdelta.spec.run import RunStatus

FORMAT = 2  # before, a build found what the user's shell had set
DEVICE_TREES = "arch/{arch}/boot/dts"

MOST_MODULES = 64
"""Options that are =m, up to which the modules are built too: a distribution has thousands."""


class BuildRequest(msgspec.Struct, frozen=True):
    """All that decides a kernel, read: nothing of it changes while it is built."""

    spec: str
    source: Source
    tools: Toolchain
    steps: tuple[ConfigStep, ...]
    own_config: str | None
    relink: Relink | None = None
    allow_unknown: bool = False
    given: tuple[str, ...] = ()
    notes: tuple[SpecNote, ...] = ()

    @property
    def question(self) -> str:
        """The hash of it: equal requests get the same kernel."""
        folder = self.tools.folder
        return identity(
            {
                **self._asked(),
                "format": FORMAT,
                "tree": self.source.tree,
                "tools": self.tools.facts(),
                "steps": msgspec.to_builtins(self.steps),
                "own_config": self.own_config,
                **({"allow_unknown": True} if self.allow_unknown else {}),
                "lab": [
                    (one.option, one.value)
                    for options in (lab_options(folder), lab_options(folder, "small"))
                    for one in options
                ],
            }
        )

    def asks_config_of(self, tree: str) -> str:
        """The hash of what decides whether its config is granted, were its source that tree."""
        source = msgspec.structs.replace(self.source, tree=tree)
        return identity({"config": msgspec.structs.replace(self, source=source).question})

    @property
    def family(self) -> str:
        """The hash of it but for the link: equal ones get kernels of the same objects."""
        return identity({"family": msgspec.structs.replace(self, relink=None).question})

    def objects(self, granted: str) -> str:
        """The key of what is linked: kernels may differ in how it is."""
        return identity(
            {
                "format": FORMAT,
                "tree": self.source.tree,
                "tools": self.tools.facts(),
                "config": identity(parse_config(granted)),
            }
        )

    def key(self, granted: str) -> str:
        """The kernel's own key: two requests that were granted the same config share it."""
        asked, objects = self._asked(), self.objects(granted)
        return identity({**asked, "objects": objects}) if asked else objects

    def _asked(self) -> dict[str, object]:
        """What is asked of the link."""
        return {} if self.relink is None else {"relink": self.relink.facts()}

    def failed(self, status: RunStatus, detail: str, log_file: Path | None = None) -> NoKernel:
        """What could not be made of it."""
        return NoKernel(
            self.spec, status, self.question, detail, str(log_file) if log_file else None
        )


def build_kernel(spec: SourceSpec, log: Log) -> Kernel | NoKernel:
    """The kernel of a source spec, from the cache or built; or why there is none.

    UserError for a spec that names no tree, commit or file; LabError when the lab cannot build.
    Of several processes that want a kernel of one tree, one builds and the others wait.
    """
    request = _requested(spec, log)
    if isinstance(request, NoKernel):
        return request
    memo = Memo(request.question)
    if (key := memo.key()) and (built := load_built(key)):
        return built.kernel(str(spec), (*request.notes, *memo.notes()))
    with held_source(request.source, log):
        found = _configured_and_built(request, log)
    if isinstance(found, NoKernel):
        return found
    made, notes = found
    use(made.path)
    memo.remember(made.key, notes)
    if request.relink is not None:
        Memo(request.family).remember(made.key)
    prune_cache(Pruning(limit=limit_bytes(), keep={made.path, request.source.folder}), log)
    return made.kernel(str(spec), (*request.notes, *notes))


def _requested(spec: SourceSpec, log: Log) -> BuildRequest | NoKernel:
    """All that decides the kernel of a spec; or why it cannot be built as asked."""
    if has_kernel_mode(spec):
        must_have_kernel_mode(_variables(spec).get("ARCH") or platform.machine())
    source = source_of(spec, log)
    if isinstance(source, PatchFailure):
        return _not_built(spec, f"{source.patch}: {source.detail}", RunStatus.DOES_NOT_APPLY)
    if (relink := relink_of(spec.changes)) is not None:
        changed = relinkable(source, toolchain(_variables(spec)).folder, relink, log)
        if isinstance(changed, str):
            return _not_built(spec, changed, RunStatus.BUILD_FAILED)
        source = changed
    return _read(spec, source, relink)


def new_request(spec: SourceSpec, log: Log) -> BuildRequest | NoKernel | None:
    """The same, of a kernel that is not in the cache; None for one that is."""
    request = _requested(spec, log)
    if isinstance(request, NoKernel):
        return request
    key = Memo(request.question).key()
    return None if key and load_built(key) else request


def refused_in(request: BuildRequest, tree: Path, purpose: str) -> NoKernel | None:
    """Why a request is refused in a folder that has no more of its source's files than configuring
    needs, with output folders of that purpose; None if its config is granted.
    """
    kbuild = Kbuild(request.source.folder, tree, request.tools, jobs=1, purpose=purpose)
    found = _granted(request, _configured(request, kbuild))
    return found if isinstance(found, NoKernel) else None


def _not_built(spec: SourceSpec, why: str, status: RunStatus) -> NoKernel:
    return NoKernel(str(spec), status, identity(str(spec)), why)


def build_question(spec: SourceSpec, source: Source) -> str:
    """The hash of all that decides the kernel of a spec, were its source this one: equal ones get
    the same kernel, and fail alike.
    """
    return _read(spec, source, relink_of(spec.changes)).question


def _configured_and_built(
    request: BuildRequest, log: Log
) -> tuple[BuiltKernel, tuple[SpecNote, ...]] | NoKernel:
    """The kernel, and what came of its config otherwise than may be expected."""
    kbuild = _kbuild(request, checked_out(request.source, log))
    sibling = _sibling(request)
    config = _taken_over(sibling, kbuild) if sibling else _configured(request, kbuild)
    if isinstance(config, Configured):
        for note in config.notes:
            log(note.text)
    if isinstance(granted := _granted(request, config), NoKernel):
        return granted
    if missing := missing_files(parse_config(granted.text), (kbuild.out, kbuild.tree)):
        return request.failed(RunStatus.CONFIG_REFUSED, "\n".join(missing))
    made = load_built(request.key(granted.text)) or _build(request, granted, kbuild, sibling, log)
    return made if isinstance(made, NoKernel) else (made, tuple(granted.notes))


def _granted(request: BuildRequest, config: Configured | ConfigFailed) -> Configured | NoKernel:
    """The config, unless it is not as asked, or of a kernel that cannot be booted."""
    if isinstance(config, ConfigFailed):
        return request.failed(RunStatus.CONFIG_REFUSED, f"make {config.target}: {config.detail}")
    if config.refused:
        text = refusal_text(config.refused, config.unknown)
        failed = request.failed(RunStatus.CONFIG_REFUSED, text)
        return msgspec.structs.replace(failed, refused=config.refused)
    arch = kernel_arch(request.tools.arch)
    if arch.bits == 64 and parse_config(config.text).get("CONFIG_64BIT") != "y":
        return request.failed(
            RunStatus.CONFIG_REFUSED,
            f"this config makes a kernel for 32-bit {arch.folder}, and 64-bit ones can be booted",
        )
    return config


def _configured(request: BuildRequest, kbuild: Kbuild) -> Configured | ConfigFailed:
    return configure(
        kbuild.out,
        kbuild.tree,
        request.steps,
        kbuild.configure,
        arch=request.tools.folder,
        own_config=request.own_config,
        allow_unknown=request.allow_unknown,
    )


def granted_in(spec: SourceSpec, source: Source, tree: Path, purpose: str) -> Config | None:
    """What a spec's config comes to in a folder that has no more of the source's files than
    configuring needs, with output folders of that purpose; None if the configuration fails.
    """
    request = _read(spec, source, relink_of(spec.changes))
    kbuild = Kbuild(source.folder, tree, request.tools, jobs=1, purpose=purpose)
    found = _configured(request, kbuild)
    return None if isinstance(found, ConfigFailed) else parse_config(found.text)


def _sibling(request: BuildRequest) -> BuiltKernel | None:
    """A kernel of the same objects, if one that is to be relinked has one in the cache, with a
    digest by the present rules: that is taken over.
    """
    if request.relink is None or (key := Memo(request.family).key()) is None:
        return None
    built = load_built(key)
    return built if built and is_current(built.path / DIGEST) else None


def _taken_over(sibling: BuiltKernel, kbuild: Kbuild) -> Configured:
    """The config of a kernel of the same objects, in the output folder."""
    file = make_folder(kbuild.out) / ".config"
    with lab_errors("copying a config to", file):
        text = (sibling.path / sibling.config).read_text()
        # A file of a new time would be read again by all that depends on it.
        if not file.is_file() or file.read_text(errors="replace") != text:
            file.write_text(text)
    names = ("base", "asked", "lab", "missing", "changed", "derived", "unknown", "idle")
    return Configured(text=text, refused=(), **{name: getattr(sibling, name) for name in names})


def held_source(source: Source, log: Log) -> AbstractContextManager[None]:
    """Holds the lock of a source tree's work tree and output folders."""
    return locked(_lock(source), f"building {source.name}", log)


def held_by_another(source: Source) -> bool:
    """Whether that lock would have to be waited for."""
    with locked_if_free(_lock(source)) as free:
        return not free


def _lock(source: Source) -> str:
    return f"tree-{source.folder.name}"


def _kbuild(request: BuildRequest, tree: Path) -> Kbuild:
    kbuild = Kbuild(root=request.source.folder, tree=tree, toolchain=request.tools, jobs=cores())
    link = () if request.relink is None else tuple(link_words(request.relink, kbuild.out))
    return msgspec.structs.replace(kbuild, link=link)


def _read(spec: SourceSpec, source: Source, relink: Relink | None) -> BuildRequest:
    variables = _variables(spec)
    if relink is not None:
        variables = relinking_variables(variables, relink)
    read = read_changes(spec.changes)
    own = expanded(spec.path) / ".config" if isinstance(spec, TreeSpec) else None
    return BuildRequest(
        spec=str(spec),
        source=source,
        tools=toolchain(variables),
        steps=tuple(_steps(spec, read)),
        own_config=own.read_text(errors="replace") if own and own.is_file() else None,
        relink=relink,
        given=(*given_lines(read), *source.notes),
        notes=(*order_notes(read), *map(SpecNote, source.notes)),
        allow_unknown=any(isinstance(change, AllowUnknownChange) for change in spec.changes),
    )


def _variables(spec: SourceSpec) -> dict[str, str]:
    return {c.name: c.value for c in spec.changes if isinstance(c, VariableChange)}


def _steps(spec: SourceSpec, read: ReadChanges) -> Iterator[ConfigStep]:
    if has_kernel_mode(spec):
        # First: what the user asks for is never overruled, and a conflict is seen as one.
        yield ConfigStep("fragment", FRAGMENT_NAME, kernel_mode_fragment())
    for change, given in read:
        if isinstance(change, OptionChange):
            yield ConfigStep("option", change.name, change.value)
        elif isinstance(change, FileChange | BaseConfigChange):
            if given is None:
                yield ConfigStep("target", change.path)
            elif given.kind in ("fragment", "base"):
                yield ConfigStep(given.kind, change.path, given.text)


def _targets(granted: str, arch: KernelArch, tree: Path) -> tuple[list[str], int]:
    """What to build, and how many options' modules are left out."""
    options = parse_config(granted)
    modules = len(modules_of(options))
    targets = [
        arch.image(options).name,
        *(found for name in arch.device_trees if (found := _dtb(tree, arch, name))),
    ]
    if options.get("CONFIG_MODULES") != "y" or modules > MOST_MODULES:
        return targets, modules
    return [*targets, "modules"], 0


def _dtb(tree: Path, arch: KernelArch, name: str) -> str:
    """The target of a device tree, below the folder of device trees: since Linux 6.5 they are in
    folders by maker. "" if the tree has it not.
    """
    folder = tree / DEVICE_TREES.format(arch=arch.folder)
    found = sorted(folder.rglob(f"{name}.dts"))
    return str(found[0].relative_to(folder).with_suffix(".dtb")) if found else ""


def _build(
    request: BuildRequest,
    config: Configured,
    kbuild: Kbuild,
    sibling: BuiltKernel | None,
    log: Log,
) -> BuiltKernel | NoKernel:
    key = request.key(config.text)
    targets, modules_left = _targets(config.text, kernel_arch(request.tools.arch), kbuild.tree)
    log_file = cache_dir("logs") / f"build-{key[:12]}.log"
    log(f"building {request.source.name} ({key[:12]}), log: {log_file}")
    started = time.monotonic()
    wrong = kbuild.make(targets, log_file, log)
    seconds = time.monotonic() - started
    if wrong:
        return request.failed(RunStatus.BUILD_FAILED, wrong, log_file)
    digest = load_digest(sibling.path / DIGEST) if sibling else digest_of(kbuild.out)
    linked = None
    if request.relink is not None:
        middle = orders_in_the_middle(request.tools.targeted, request.tools.linker)
        linked = linked_map(kbuild.out / VMLINUX, digest, request.relink, middle=middle)
        if isinstance(linked, str):
            return request.failed(
                RunStatus.BUILD_FAILED, f"the relink went wrong: {linked}", log_file
            )
        linked = msgspec.structs.replace(linked, objects=request.objects(config.text))
    with published_folder(built_folder(key), log) as folder:
        shutil.copyfile(log_file, folder / LOG)
        save_digest(digest, folder / DIGEST)
        _keep_dependencies(digest, kbuild, sibling, folder, boot="vmlinux" not in targets)
        made = _install(request, key, config, kbuild, folder, targets=targets)
        made = msgspec.structs.replace(
            made, seconds=seconds, modules_left=modules_left, linked=linked, given=request.given
        )
        write_json(folder / RECORD, made)
    log(f"built {made.release} ({key[:12]}) in {seconds:.0f} s")
    return made


def _keep_dependencies(
    digest: Digest, kbuild: Kbuild, sibling: BuiltKernel | None, folder: Path, *, boot: bool
) -> None:
    """Writes down which files the objects were made from."""
    if sibling and (known := sibling.path / DEPENDENCIES).is_file():
        with lab_errors("copying to", folder):
            shutil.copyfile(known, folder / DEPENDENCIES)
    else:
        save_dependencies(dependencies_of(kbuild.out, digest, boot=boot), folder / DEPENDENCIES)


def _copy_kept(out: Path, folder: Path, trees: Path, targets: Sequence[str]) -> None:
    """Copy what is kept of a build besides its image and config."""
    # vmlinux: for its symbols, which are in the order of the link.
    for name in ("System.map", "Module.symvers", VMLINUX):
        if not (folder / name).exists() and (out / name).is_file():
            shutil.copyfile(out / name, folder / name)
    for name in targets:
        if name.endswith(".dtb"):
            shutil.copyfile(trees / name, make_folder(folder / DTBS) / Path(name).name)


def _install(
    request: BuildRequest,
    key: str,
    config: Configured,
    kbuild: Kbuild,
    folder: Path,
    *,
    targets: Sequence[str],
) -> BuiltKernel:
    """Copies what is kept of a build, and describes it."""
    out, arch = kbuild.out, kernel_arch(request.tools.arch)
    booted = arch.image(parse_config(config.text))
    image = folder / booted.name
    with lab_errors("copying a kernel to", folder):
        shutil.copyfile(out / booted.path, image)
        (folder / "config").write_text(config.text)
        _copy_kept(out, folder, out / DEVICE_TREES.format(arch=arch.folder), targets)
    release, banner = banner_of(out / VMLINUX)
    # The folder may have modules of another config, which this one did not ask for.
    modules = install_modules(kbuild, folder, release) if "modules" in targets else None
    sha256, present = sha256_file(image), folder / modules if modules else None
    return BuiltKernel(
        key=key,
        identity=kernel_identity(arch.machine, sha256, hash_modules(present)),
        spec=request.spec,
        tree=request.source.tree,
        source=request.source.name,
        folder=str(request.source.folder),
        arch=request.tools.arch,
        flavour=request.tools.flavour,
        variables=request.tools.variables,
        versions=request.tools.versions,
        release=release,
        banner=banner,
        image=image.name,
        image_format=booted.format,
        image_sha256=sha256,
        config="config",
        modules=modules,
        base=config.base,
        asked=config.asked,
        lab=config.lab,
        changed=config.changed,
        derived=config.derived,
        unknown=config.unknown,
        idle=config.idle,
        missing=config.missing,
        modules_left=0,
        seconds=0.0,
        image_bytes=image.stat().st_size,
    )
