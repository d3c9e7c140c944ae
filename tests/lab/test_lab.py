"""The lab tells the truth: the servers are real, and Nova treats an edited definition as production does.

Sources: the libvirt driver's `_soft_reboot` (starts the persistent definition as it is) and `_hard_reboot`
(undefines the domain and writes it anew from the flavor).
"""

import xml.etree.ElementTree as ET

import libvirt
import openstack.exceptions
import pytest

from tests.lab.cloud import Lab, Server, wait_until

INACTIVE_SECURE = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


def edit_maxima(domain: libvirt.virDomain, vcpus: int, memory_kib: int) -> None:
    """Writes other maxima into the persistent definition and leaves the current values as they are."""
    root = ET.fromstring(domain.XMLDesc(INACTIVE_SECURE))
    vcpu, memory, topology = root.find("vcpu"), root.find("memory"), root.find("cpu/topology")
    assert vcpu is not None
    assert memory is not None
    assert topology is not None
    vcpu.set("current", vcpu.get("current") or vcpu.text or "")
    vcpu.text = str(vcpus)
    topology.attrib.update(sockets=str(vcpus), cores="1", threads="1")
    memory.set("unit", "KiB")
    memory.text = str(memory_kib)
    domain.connect().defineXML(ET.tostring(root, encoding="unicode"))


def maximum_vcpus(domain: libvirt.virDomain) -> tuple[int, int]:
    """The maximum in the config and in the running domain."""
    maximum = libvirt.VIR_DOMAIN_VCPU_MAXIMUM
    return (
        domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_CONFIG | maximum),
        domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE | maximum),
    )


def guest_cpus(lab: Lab, server: Server) -> dict[int, bool]:
    """Which CPUs the guest has and whether each is online. The agent lists them in no order."""
    return {cpu["logical-id"]: cpu["online"] for cpu in lab.agent(server, "guest-get-vcpus")}


def reboot(lab: Lab, server: Server, how: str) -> None:
    """Reboots through Nova and waits for a new QEMU process, for Nova and for the guest.

    One with an agent has been waited for: a guest that still boots misses the power button.
    """
    before = lab.domain_id(server)
    lab.cloud("admin").compute.reboot_server(server.id, how)
    wait_until(
        f"{server.name} to run anew", lambda: lab.domain_id(server) not in {before, None}, timeout_s=150
    )
    lab.wait_active(server)
    lab.wait_booted(server)


@pytest.fixture(scope="module")
def server(lab: Lab) -> Server:
    return lab.create_server("truth")


def test_server_is_a_real_domain_with_its_flavor(lab: Lab, server: Server) -> None:
    domain = lab.domain(server)
    assert domain.name() == server.libvirt_name
    assert domain.isActive()
    assert domain.isPersistent()
    assert maximum_vcpus(domain) == (2, 2)
    assert domain.maxMemory() == 512 * 1024
    assert f"<nova:name>{server.name}</nova:name>" in domain.XMLDesc()


def test_guest_agent_answers_from_a_guest_with_two_cpus(lab: Lab, server: Server) -> None:
    lab.wait_agent(server)
    assert guest_cpus(lab, server) == {0: True, 1: True}
    assert "cpus=2" in lab.console(server)


def test_member_sees_no_host_side_names(lab: Lab, server: Server) -> None:
    seen = lab.cloud("demo").compute.get_server(server.id)
    assert seen.name == server.name
    assert seen.instance_name is None
    assert seen.hypervisor_hostname is None
    with pytest.raises(openstack.exceptions.ForbiddenException):
        list(lab.cloud("demo").compute.servers(all_projects=True))


def test_soft_reboot_keeps_the_edit_and_hard_reboot_loses_it(lab: Lab, server: Server) -> None:
    domain = lab.domain(server)
    edit_maxima(domain, vcpus=8, memory_kib=2 * 1024 * 1024)
    assert maximum_vcpus(domain) == (8, 2)
    lab.wait_agent(server)

    reboot(lab, server, "SOFT")
    assert maximum_vcpus(domain) == (8, 8)
    assert domain.maxMemory() == 2 * 1024 * 1024

    reboot(lab, server, "HARD")
    assert maximum_vcpus(lab.domain(server)) == (2, 2)
    assert lab.domain(server).maxMemory() == 512 * 1024


def test_guest_that_ignores_shutdown_turns_soft_into_hard(lab: Lab) -> None:
    deaf = lab.create_server("deaf", image="lab-deaf")
    edit_maxima(lab.domain(deaf), vcpus=8, memory_kib=2 * 1024 * 1024)
    reboot(lab, deaf, "SOFT")
    assert maximum_vcpus(lab.domain(deaf)) == (2, 2)
    with pytest.raises(libvirt.libvirtError) as refused:
        lab.agent(deaf, "guest-ping")
    assert refused.value.get_error_code() == libvirt.VIR_ERR_AGENT_UNRESPONSIVE


def test_hot_added_cpus_stay_offline_in_lab_nocpuauto(lab: Lab) -> None:
    grown = lab.create_server("nocpuauto", image="lab-nocpuauto")
    edit_maxima(lab.domain(grown), vcpus=4, memory_kib=512 * 1024)
    lab.wait_agent(grown)
    reboot(lab, grown, "SOFT")
    lab.wait_agent(grown)
    lab.domain(grown).setVcpusFlags(4, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    wait_until("4 CPUs in the guest", lambda: len(guest_cpus(lab, grown)) == 4, timeout_s=60)
    assert guest_cpus(lab, grown) == {0: True, 1: True, 2: False, 3: False}
