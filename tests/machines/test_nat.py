# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `nat` in real guests: its packets, that it repeats, what it says when it cannot."""

import asyncio
import functools
from fractions import Fraction

import msgspec
import pytest

from kdelta.counts.model import Packets, RegionCounts, merged_regions, with_packets
from kdelta.counts.reader import Sources, read_counts
from kdelta.counts.symbols import kallsyms_file, parse_kallsyms
from kdelta.counts.trace_file import read_traces
from kdelta.guests.job import Job, job_archive
from kdelta.lab.work import workload_work
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Recording, Snapshot, run_guest
from kdelta.replay.phases import PhasedTrace
from kdelta.spec.run import RunStatus
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import ARM, ARM64, NEW, clock_ticks, guest, kernel, new_setting, run_job

pytestmark = [pytest.mark.guest, pytest.mark.slow]

NAT = find_workload("nat")
LONG_ARM = pytest.param(ARM, marks=pytest.mark.campaign)
FEW = ("udp-64b", "udp-echo-64b", "udp-64b-forward", "udp-64b-flowtable", "frames-64b", "tcp-bulk")
LATER = ("connections", "tcp-iperf3", "udp-64b-iptables", "pktgen-64b")


@functools.cache
def job(*operations: str, spec: str = NEW) -> Job:
    return workload_work(NAT, operations, kernel(spec)).job


def without(job_of: Job, *modules: str) -> Job:
    """The same for a kernel that does not have these."""
    left = tuple(
        one
        for one in job_of.optional_modules
        if not any(name in one.guest.rpartition("/")[2] for name in modules)
    )
    return msgspec.structs.replace(job_of, optional_modules=left)


def regions_of(outcome: GuestOutcome) -> dict[str, RegionCounts]:
    assert outcome.status == "ok", (outcome.status, outcome.detail, outcome.console[-2000:])
    assert outcome.counts
    assert outcome.symbols
    sources = Sources(outcome.symbols, outcome.messages.get("modules", b""), {}, b"")
    counts = read_counts(outcome.counts, sources, clock_ticks(outcome))
    regions = with_packets(counts.regions, outcome.messages["packets"])
    return merged_regions(msgspec.structs.replace(counts, regions=regions))


@functools.cache
def counted(*operations: str) -> dict[str, RegionCounts]:
    return regions_of(run_job(job(*operations), guest(NEW)))


def packets(name: str) -> int:
    found = counted(*FEW)[name].packets
    assert found
    return found.count


def test_each_packet_is_received_once_by_the_router() -> None:
    for name in FEW:
        region = counted(*FEW)[name]
        assert region.packets
        each = {"udp-echo-64b": 2, "tcp-bulk": 0}.get(name, 1)
        if each:
            assert region.packets.count == each * region.iteration_count
            assert region.packets.frame_bytes == 106 * region.packets.count
    # 46 segments of 64 KiB, and what acknowledges them.
    assert packets("tcp-bulk") > 46 * counted(*FEW)["tcp-bulk"].iteration_count


FLOWS = ("udp-64b", "frames-64b-forward", "tcp-bulk", "connections")


def test_two_flows_are_of_a_cpu_each() -> None:
    two = find_workload("nat:flows=2")
    outcome = run_job(workload_work(two, FLOWS, kernel(NEW)).job, guest(NEW, cpus=2))
    regions = regions_of(outcome)
    assert list(regions) == list(FLOWS)
    for name in ("udp-64b", "frames-64b-forward"):
        assert regions[name].packets == Packets(
            2 * regions[name].iteration_count, 2 * 106 * regions[name].iteration_count
        )
    for region in regions.values():
        first, second = (cpu.own_kernel for cpu in region.cpus)
        assert 0.9 * first < second < 1.1 * first
    assert regions_of(run_job(workload_work(two, FLOWS, kernel(NEW)).job, guest(NEW, cpus=2))) == (
        regions
    )


@pytest.mark.parametrize(
    ("operation", "cpus", "said"),
    [
        ("udp-64b", 1, "udp-64b: 2 flows need 2 CPUs: add --smp 2"),
        ("pktgen-64b", 2, "pktgen-64b: it has one flow"),
    ],
)
def test_flows_that_cannot_be_are_refused(operation: str, cpus: int, said: str) -> None:
    work = workload_work(find_workload("nat:flows=2"), (operation,), kernel(NEW))
    outcome = run_job(work.job, guest(NEW, cpus=cpus))
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.startswith(said)


def test_it_repeats_to_the_last_instruction() -> None:
    again = regions_of(run_job(job(*FEW), guest(NEW)))
    assert again == counted(*FEW)


def test_what_is_left_out_costs_nothing() -> None:
    """Forwarding costs less than NAT, a flow table less than both."""
    insns = {name: region.median_own_insns() for name, region in counted(*FEW).items()}
    assert insns["udp-64b-flowtable"] < insns["udp-64b-forward"] < insns["udp-64b"]


def test_a_region_of_everybody_has_the_work_of_threads() -> None:
    """pktgen sends from a thread of the kernel's; its work is the region's, and no other task's."""
    regions = regions_of(run_job(job(*LATER), guest(NEW)))
    assert list(regions) == list(LATER)
    pktgen = regions["pktgen-64b"]
    assert pktgen.packets
    assert pktgen.packets.count == 400
    assert pktgen.cost("other").insns == 0
    assert pktgen.cost("own").insns > 400 * Fraction(1000)
    iperf = regions["tcp-iperf3"].packets
    assert iperf
    assert iperf.frame_bytes > 2 << 20
    # SYN, its answer and acknowledgement, and two FINs with theirs at least.
    connections = regions["connections"]
    assert connections.packets
    assert connections.packets.count >= 6 * connections.iteration_count


@pytest.mark.parametrize("spec", [NEW, LONG_ARM, ARM64])
def test_each_packet_has_one_router_phase(spec: str) -> None:
    outcome = traced(job("udp-64b", "udp-64b-flowtable", "tcp-bulk", spec=spec), spec)
    regions = regions_of(outcome)
    assert outcome.counts
    assert outcome.symbols
    symbols = (
        *kallsyms_file(outcome.symbols),
        *parse_kallsyms(outcome.messages.get("modules", b"")),
    )
    traces = read_traces(outcome.counts)
    assert [trace.region for trace in traces] == list(regions)
    shares = {}
    for trace in traces:
        phased = PhasedTrace(trace, symbols, NAT.phases)
        assert phased.names == ("router", "rest")
        found = regions[trace.region].packets
        assert found
        assert phased.calls[0] == found.count
        shares[trace.region] = Fraction(int(phased.insns[0].sum()), found.count)
    assert 500 < shares["udp-64b-flowtable"] < shares["udp-64b"] < shares["tcp-bulk"] + 2000


@pytest.mark.parametrize("spec", [LONG_ARM, ARM64])
def test_other_architectures(spec: str) -> None:
    """With programs of their own packages: nftables, flow tables, iptables, iperf3, pktgen."""
    names = ("udp-64b-forward", "udp-64b-flowtable", "frames-64b-iptables", *LATER)
    job_of = job(*names, spec=spec)
    regions = regions_of(run_job(job_of, guest(spec)))
    assert list(regions) == list(names)
    for name in ("udp-64b-forward", "udp-64b-flowtable", "frames-64b-iptables", "pktgen-64b"):
        found = regions[name].packets
        assert found
        assert found.count == 400
    ticks = [region.idle_ticks() for region in regions.values()]
    assert all(idle is None or idle >= 0 for idle in ticks)
    own = {name: region.median_own_insns() for name, region in regions.items()}
    assert own["udp-64b-flowtable"] < own["udp-64b-forward"] < own["udp-64b-iptables"]
    assert regions_of(run_job(job_of, guest(spec))) == regions


def traced(of: Job, spec: str) -> GuestOutcome:
    async def go() -> GuestOutcome:
        where = guest(spec)
        found = await obtain_snapshot(where, new_setting())
        assert isinstance(found, Snapshot)
        setting = msgspec.structs.replace(new_setting(), recording=Recording("on"))
        return await run_guest(where, job_archive(of), setting, found)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("refused-rule", "nft refuses the rules of router: "),
        ("lost-packets", "a packet to the WAN's host was lost: it did not arrive within 3000 ms"),
        ("unmasqueraded", "a packet came from 192.168.1.2 and not from 198.51.100.1"),
    ],
)
def test_what_goes_wrong_is_the_runs_detail(operation: str, said: str) -> None:
    outcome = run_job(job(operation), guest(NEW))
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.startswith(f"{operation}: {said}")
    assert outcome.detail.endswith("(exit 1)")


def test_what_nft_says_is_told() -> None:
    outcome = run_job(job("refused-rule"), guest(NEW))
    assert "jump nowhere" in outcome.detail
    assert "Error: Could not process rule" in outcome.detail


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        (("nf", "x_tables", "masq", "nat", "ip_tables"), "CONFIG_NF_TABLES (nftables)"),
        (("veth",), "CONFIG_VETH (pairs of virtual Ethernet devices)"),
        (("nft_masq",), "CONFIG_NF_CONNTRACK, CONFIG_NFT_NAT and CONFIG_NFT_MASQ (masquerading)"),
    ],
)
def test_what_a_kernel_lacks_is_named_before_traffic(modules: tuple[str, ...], said: str) -> None:
    outcome = run_job(without(job("udp-64b"), *modules), guest(NEW))
    assert outcome.status is RunStatus.WORKLOAD_FAILED
    assert outcome.detail.startswith(f"udp-64b: this workload needs {said}")
    assert "packets" not in outcome.messages


def test_what_a_kernel_lacks_for_a_variant_is_left_out_unless_asked_for() -> None:
    lacking = ("pktgen", "flow_offload", "ip_tables", "iptable_nat", "MASQUERADE")
    whole = msgspec.structs.replace(job(), argv=(NAT.program, "--scale", "1"))
    outcome = run_job(without(whole, *lacking), guest(NEW))
    regions = set(regions_of(outcome))
    names = {operation.name for operation in NAT.operations}
    variants = {name for name in names if "flowtable" in name or "iptables" in name}
    assert regions == names - variants - {"pktgen-64b", "pktgen-64b-forward"}
    warnings = outcome.messages["warning"].decode()
    assert "pktgen-64b is left out: it needs CONFIG_NET_PKTGEN" in warnings
    assert "udp-64b-flowtable is left out: it needs CONFIG_NF_FLOW_TABLE_INET" in warnings
    assert "udp-64b-iptables is left out: it needs CONFIG_IP_NF_NAT" in warnings
    asked = run_job(without(job("pktgen-64b"), "pktgen"), guest(NEW))
    assert asked.detail.startswith("pktgen-64b: this workload needs CONFIG_NET_PKTGEN")
