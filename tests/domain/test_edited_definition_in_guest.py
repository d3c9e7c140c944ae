"""A real guest runs on what the edit wrote: it boots with the boot vCPUs, grows, and boots with the grown ones."""

from collections.abc import Callable

import libvirt
import pytest

from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology
from tests.domain.conftest import inactive_xml
from tests.guest_domains import GuestDomains, read_guest_cpus, wait_for


@pytest.mark.guest
def test_topo_09_a_guest_grows_on_the_written_list_and_boots_with_what_it_grew_to(
    define_domain: Callable[..., libvirt.virDomain], embed: libvirt.virConnect, embed_domains: GuestDomains
) -> None:
    domain = define_domain(vcpus=2, max_vcpus=2, memory_mib=512, max_memory_mib=512)
    edit = Edit(maximum_vcpus=6, topology=Topology(6), memory_kib=1024 * 1024)
    embed.defineXML(edit_definition(inactive_xml(domain), edit))
    domain.create()
    embed_domains.wait_until_booted(domain)
    assert read_guest_cpus(domain) == {0: True, 1: True}
    live = parse_definition(domain.XMLDesc())
    assert (live.maximum_vcpus, live.current_vcpus, live.topology) == (6, 2, Topology(6))
    assert live.memory_kib == 1024 * 1024
    wait_for(
        lambda: domain.memoryStats().get("actual") == 512 * 1024, "balloon at the boot allocation (XML-09)"
    )

    domain.setVcpusFlags(6, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    embed.defineXML(edit_definition(inactive_xml(domain), Edit(current_vcpus=6)))
    wait_for(lambda: len(read_guest_cpus(domain)) == 6, "six CPUs in the guest")
    grown = parse_definition(inactive_xml(domain))
    assert grown.current_vcpus == 6
    assert [entry.hotpluggable for entry in grown.vcpus] == [False, False, True, True, True, True]

    domain.destroy()
    embed_domains.console_path(domain.name()).unlink()
    domain.create()
    embed_domains.wait_until_booted(domain)
    assert read_guest_cpus(domain) == dict.fromkeys(range(6), True)
    booted = parse_definition(domain.XMLDesc())
    # still removable after a boot with all of them
    assert [entry.hotpluggable for entry in booted.vcpus] == [False, False, True, True, True, True]
