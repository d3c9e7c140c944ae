"""The guest that the other tests lean on does what they take for granted, on both ways to run it."""

import subprocess
import sys
from pathlib import Path

import libvirt
import pytest

from tests.guest_domains import GuestDomains, ask_agent, is_agent_up, read_guest_cpus, wait_for
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot, end_qemu

pytestmark = pytest.mark.guest

_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE


def grow(domain: libvirt.virDomain) -> None:
    """The reference job by raw calls: 2 to 8 vCPUs, 512 MiB to 1 GiB."""
    assert read_guest_cpus(domain) == {0: True, 1: True}
    domain.setVcpusFlags(8, _LIVE)
    wait_for(lambda: len(read_guest_cpus(domain)) == 8, "eight CPUs in the guest")
    assert (
        sum(read_guest_cpus(domain).values()) == 2
    )  # hot-added CPUs stay offline until someone onlines them
    domain.setGuestVcpus("2-7", 1)
    assert all(read_guest_cpus(domain).values())
    domain.setMemoryFlags(1024 * 1024, _LIVE)
    wait_for(lambda: domain.memoryStats()["actual"] == 1024 * 1024, "the balloon at 1 GiB")


@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_embed_guest_grows_and_shuts_down(embed_domains: GuestDomains, machine: str) -> None:
    domain = embed_domains.boot(machine=machine)
    grow(domain)
    wait_for(lambda: "nproc=8" in embed_domains.read_console(domain), "nproc=8 on the console")
    domain.shutdown()
    wait_for(lambda: not domain.isActive(), "shutdown")


def test_private_libvirtd_guest_grows_and_virsh_agrees(
    private_libvirtd: PrivateLibvirtd, libvirtd_domains: GuestDomains
) -> None:
    domain = libvirtd_domains.boot(name="web-1")
    grow(domain)
    assert private_libvirtd.virsh("vcpucount", "web-1", "--current", "--live").strip() == "8"
    assert private_libvirtd.virsh("domstate", "web-1").strip() == "running"


def test_guest_words_change_how_it_behaves(embed_domains: GuestDomains) -> None:
    deaf = embed_domains.boot(words="noga noacpid noballoon nr_cpus=2", vcpus=1)
    deaf.setVcpusFlags(4, _LIVE)
    deaf.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
    refusing = embed_domains.boot(
        words="nocpuauto nosmt=force",
        cpu_model="Nehalem",
        topology={"sockets": 1, "cores": 4, "threads": 2},
    )
    with pytest.raises(libvirt.libvirtError):
        ask_agent(refusing, "guest-set-vcpus", vcpus=[{"logical-id": 1, "online": True}])
    assert read_guest_cpus(refusing)[1] is False
    # By now the first guest had several seconds to react to the power button, and did not.
    assert deaf.isActive()
    assert not is_agent_up(deaf)
    assert deaf.memoryStats()["actual"] == 1024 * 1024
    assert "nproc=4" not in embed_domains.read_console(deaf)


def test_hot_added_cpus_come_online_without_nocpuauto(embed_domains: GuestDomains) -> None:
    domain = embed_domains.boot(words="", vcpus=1)
    domain.setVcpusFlags(2, _LIVE)
    wait_for(lambda: read_guest_cpus(domain) == {0: True, 1: True}, "CPU 1 online by the guest's own doing")


@pytest.mark.parametrize("ended", [False, True])
def test_a_guest_that_hangs_while_it_boots_is_started_afresh_once(
    embed_domains: GuestDomains, ended: bool
) -> None:
    # a kernel without an init and a disk panics and stays there; the next start is from a definition that boots
    hangs = "rdinit=/nowhere"
    domain = embed_domains.boot(until="started", words=hangs)
    wait_for(lambda: "Kernel panic" in embed_domains.read_console(domain), "a kernel that hangs")
    was = domain.ID()
    embed_domains.connection.defineXML(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE).replace(hangs, ""))
    if ended:
        domain.destroy()
    embed_domains.wait_until_booted(domain, timeout_s=0.1)
    assert domain.ID() not in (was, -1)
    assert is_agent_up(domain)


def test_removing_leaves_nothing(
    embed: libvirt.virConnect, embed_root: EmbedRoot, embed_domains: GuestDomains
) -> None:
    embed_domains.boot(until="started", name="left-running")
    embed_domains.define(name="left-defined")
    pid = read_pid(embed_root, "left-running")
    embed_domains.remove_all()
    assert not {"left-running", "left-defined"} & {domain.name() for domain in embed.listAllDomains()}
    assert not pid_runs_qemu(pid)


def test_an_embed_root_ends_what_another_process_left_running(
    new_embed_root: EmbedRoot, embed_domains: GuestDomains
) -> None:
    """A process leaves its guests running when it goes; closing the root ends them."""
    script = (
        "import sys, libvirt; from tests.libvirt_loop import start_event_loop; start_event_loop();"
        "libvirt.open(sys.argv[1]).defineXML(sys.stdin.read()).create()"
    )
    subprocess.run(
        [sys.executable, "-c", script, new_embed_root.uri],
        input=embed_domains.render_xml(name="orphan"),
        cwd=Path(__file__).parent.parent,
        text=True,
        check=True,
    )
    pid = read_pid(new_embed_root, "orphan")
    assert pid_runs_qemu(pid)
    end_qemu(new_embed_root.path / "run/qemu")
    wait_for(lambda: not pid_runs_qemu(pid), "end of the orphan")


def read_pid(root: EmbedRoot, name: str) -> int:
    return int((root.path / f"run/qemu/{name}.pid").read_text())


def pid_runs_qemu(pid: int) -> bool:
    try:
        return b"qemu-system" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
