"""Domains of Nova on real QEMU, with a small Nova and Placement beside them that behave as told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import libvirt
import pytest

from tests.fakes.books import consumer
from tests.fakes.cloud import CloudsYaml, FakeCloud, server
from tests.fakes.worlds import NOVA
from tests.guest_domains import GuestDomains, wait_for
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd

GIB_KIB = 1024 * 1024
SECTIONS = """
[nova]
cloud = "fake"
[placement]
policy = "enforce"
"""


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeCloud, CloudsYaml]]:
    """A cloud that knows no server yet, and the file that names it."""
    file = CloudsYaml(tmp_path_factory.mktemp("cloud") / "clouds.yaml")
    with FakeCloud() as fake:
        fake.write_clouds_yaml(file)
        yield fake, file


@contextmanager
def daemon(libvirtd: PrivateLibvirtd, file: CloudsYaml) -> Iterator[HvsvcProcess]:
    """A daemon with the credential of that cloud."""
    environ = {"OS_CLIENT_CONFIG_FILE": str(file.path)}
    with HvsvcProcess(libvirtd.uri, SECTIONS, environ=environ) as process:
        yield process


def add_server(fake: FakeCloud, domain: libvirt.virDomain, **shown: str) -> str:
    """Makes the domain a server that Nova and Placement know; returns its id."""
    uuid: str = domain.UUIDString()
    fake.servers[uuid] = server({"id": uuid, **shown})
    fake.books.consumers[uuid] = consumer(2, 512)
    return uuid


def occupy_socket(libvirtd: PrivateLibvirtd, name: str, socket_id: int) -> None:
    """Plugs a CPU in past libvirt, so that QEMU refuses libvirt's own at that place."""
    device = {
        "driver": "qemu64-x86_64-cpu",
        "id": "stray",
        "socket-id": socket_id,
        "core-id": 0,
        "thread-id": 0,
    }
    command = {"execute": "device_add", "arguments": device}
    reply = json.loads(libvirtd.virsh("qemu-monitor-command", name, json.dumps(command)))
    assert "error" not in reply, reply


@pytest.mark.guest
def test_api_04_memory_first_then_a_cpu_step_that_fails_is_told_step_by_step_and_the_books_follow(
    private_libvirtd: PrivateLibvirtd, domains: GuestDomains, cloud: tuple[FakeCloud, CloudsYaml]
) -> None:
    fake, file = cloud
    domain = domains.boot(name="half", vcpus=2, max_vcpus=8, metadata=NOVA)
    uuid = add_server(fake, domain)
    before_writes: list[tuple[int, int]] = []

    def note() -> None:
        there = fake.books.resources(uuid)
        before_writes.append((there["VCPU"], there["MEMORY_MB"]))

    fake.books.before_write = note
    occupy_socket(private_libvirtd, "half", 3)
    with daemon(private_libvirtd, file) as hvsvc:
        answer = hvsvc.hvctl("scale", "half", "--vcpus", "4", "--memory", "1GiB", "-f", "json")
        found = hvsvc.hvctl_json("dominfo", "half")
    assert answer.code == 4, answer
    error = answer.json["error"]
    assert error["reason"] == "HYPERVISOR_REFUSED"
    assert (error["metadata"]["before"], error["metadata"]["reached"]) == ("2", "3")

    # each step with how it ended; the memory that grew stays, and nothing that did not happen was stored
    assert [(step["kind"], step["state"]) for step in answer.json["steps"]] == [
        ("SET_ALLOCATION", "DONE"),
        ("SET_MEMORY_LIVE", "DONE"),
        ("SET_VCPUS_LIVE", "FAILED"),
        ("ONLINE_GUEST_CPUS", "PENDING"),
        ("DEFINE_CONFIG", "PENDING"),
        ("SET_ALLOCATION", "DONE"),
    ]
    failure = error["step_failure"]
    assert failure["failed"]["kind"] == "SET_VCPUS_LIVE"
    assert [step["kind"] for step in failure["done"]] == ["SET_ALLOCATION", "SET_MEMORY_LIVE"]

    # what is true now, as libvirt says it, beside Nova's flavor
    counts = private_libvirtd.virsh("vcpucount", "half", "--live", "--current").strip()
    assert counts == str(failure["now"]["vcpus"]["current_live"]) == "3"
    assert failure["now"]["vcpus"]["current_config"] == 2
    assert domain.memoryStats()["actual"] == failure["now"]["memory"]["balloon_actual_kib"] == GIB_KIB
    assert failure["now"]["memory"]["current_config_kib"] == GIB_KIB // 2
    assert (found["nova"]["flavor_vcpus"], found["nova"]["flavor_memory_mib"]) == (2, 512)
    assert found["drift"]["status"] == "SHRUNK"
    assert "live current vCPUs: 4 asked, 3 found" in found["drift"]["differences"]

    # Placement: raised to what was asked before anything grew, then brought down to what there is
    assert before_writes == [(2, 512), (4, 1024)]
    assert fake.books.resources(uuid) == {"VCPU": 3, "MEMORY_MB": 1024, "PCI_DEVICE": 1}
    assert (found["allocation"]["vcpus"], found["allocation"]["memory_mib"]) == (3, 1024)


@pytest.mark.guest
def test_rb_07_a_change_while_a_guest_that_reset_itself_gives_memory_back_writes_no_size_it_passes_through(
    private_libvirtd: PrivateLibvirtd, domains: GuestDomains, cloud: tuple[FakeCloud, CloudsYaml]
) -> None:
    fake, file = cloud
    domain = domains.boot(name="resets", memory_mib=512, max_memory_mib=2048, metadata=NOVA)
    uuid = add_server(fake, domain)
    writes: list[int] = []
    fake.books.before_write = lambda: writes.append(fake.books.resources(uuid)["MEMORY_MB"])

    def on_its_way() -> bool:
        booted = domains.read_console(domain).count("BOOTED") > boots  # it may be quicker than we look
        return booted or domain.memoryStats()["actual"] > 512 * 1024

    with daemon(private_libvirtd, file) as hvsvc:
        boots = domains.read_console(domain).count("BOOTED")
        domain.reset()
        wait_for(on_its_way, "a balloon on its way")
        raised = hvsvc.hvctl_json("raise", "resets", "--max-vcpus", "10")
        assert raised["outcome"] == "PENDING_REBOOT", raised
        assert raised["after"]["memory"]["balloon_actual_kib"] == 512 * 1024
        assert fake.books.resources(uuid) == {"VCPU": 2, "MEMORY_MB": 512, "PCI_DEVICE": 1}
    assert writes == []


def test_rb_03_a_ceiling_that_is_stored_of_a_server_that_is_off_is_no_promise(
    private_libvirtd: PrivateLibvirtd, domains: GuestDomains, cloud: tuple[FakeCloud, CloudsYaml]
) -> None:
    fake, file = cloud
    domain = domains.define(name="shutoff", vcpus=2, max_vcpus=8, metadata=NOVA)
    add_server(fake, domain, status="SHUTOFF")
    before = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    with daemon(private_libvirtd, file) as hvsvc:
        for words in (
            ("raise", "shutoff", "--max-vcpus", "8"),
            ("raise", "shutoff", "--max-vcpus", "16"),
            ("setvcpus", "shutoff", "2", "--config"),
        ):
            answer = hvsvc.hvctl(*words, "-f", "json")
            assert answer.code == 4, answer
            assert answer.json["error"]["reason"] == "NOVA_START_DISCARDS"
        assert hvsvc.hvctl_json("operations", "list") == []
        assert hvsvc.hvctl("drift", "shutoff").code == 3, "what was refused is not asked for"
    assert domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) == before
