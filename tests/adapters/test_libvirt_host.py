"""What the host could give, asked for the domain's own emulator, architecture and machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import libvirt
import pytest

from hvsvc.adapters.libvirt_host import parse_machine_maximum, read_host, read_resources
from hvsvc.domain.definition import Definition
from hvsvc.domain.read_definition import parse_definition
from tests.adapters.libvirt_parts import config_of

_CAPABILITIES = """
<capabilities>
  <guest><os_type>xen</os_type><arch name='x86_64'><machine maxCpus='1'>pc</machine></arch></guest>
  <guest><os_type>hvm</os_type><arch name='aarch64'>
    <machine maxCpus='512'>virt</machine><machine maxCpus='2'>pc</machine>
  </arch></guest>
  <guest><os_type>hvm</os_type><arch name='x86_64'>
    <machine maxCpus='255'>pc-i440fx-7.2</machine>
    <machine canonical='pc-i440fx-7.2' maxCpus='255'>pc</machine>
    <machine maxCpus='288'>pc-q35-7.2</machine>
    <machine>microvm</machine>
    <domain type='qemu'/>
    <domain type='kvm'><machine maxCpus='710'>pc-q35-7.2</machine></domain>
  </arch></guest>
</capabilities>
"""


@pytest.fixture
def definition(define_domain: Callable[..., libvirt.virDomain]) -> Definition:
    return parse_definition(config_of(define_domain()))


@pytest.mark.parametrize(
    ("arch", "machine", "virt_type", "maximum"),
    [
        ("x86_64", "pc", "qemu", 255),
        ("x86_64", "pc-i440fx-7.2", "qemu", 255),
        ("x86_64", "pc-q35-7.2", "qemu", 288),
        ("x86_64", "pc-q35-7.2", "kvm", 710),
        ("x86_64", "pc", "kvm", 255),
        ("aarch64", "virt", "qemu", 512),
        ("x86_64", "virt", "qemu", None),
        ("x86_64", "microvm", "qemu", None),
        ("s390x", "pc", "qemu", None),
    ],
)
def test_api_06_the_machine_of_the_domains_own_architecture(
    definition: Definition, arch: str, machine: str, virt_type: str, maximum: int | None
) -> None:
    asked = replace(definition, arch=arch, machine=machine, virt_type=virt_type)
    assert parse_machine_maximum(_CAPABILITIES, asked) == maximum


@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_api_06_limits_follow_the_machine(
    embed: libvirt.virConnect, define_domain: Callable[..., libvirt.virDomain], machine: str
) -> None:
    # 288 with QEMU 7.2, 4096 with 10.0
    maximum = 255 if machine == "pc" else 288 if embed.getVersion() < 8_000_000 else 4096
    domain = define_domain(machine=machine)
    host = read_host(embed, domain.UUIDString(), parse_definition(config_of(domain)))
    assert host.hostname == embed.getHostname() != ""
    assert (host.hypervisor_max_vcpus, host.machine_max_vcpus) == (maximum, maximum)
    assert host.pcpus == len(host.online_pcpus) == embed.getInfo()[2]
    # not nodeinfo's memory, which may be stale: the kernel's own figure
    assert host.memory_kib == int(Path("/proc/meminfo").read_text().split()[1])


def test_resources_are_those_of_the_host(embed: libvirt.virConnect) -> None:
    resources = read_resources(embed)
    assert resources.pcpus == embed.getInfo()[2]
    assert resources.memory_kib == int(Path("/proc/meminfo").read_text().split()[1])


def test_others_are_the_running_domains_but_this_one(
    embed: libvirt.virConnect, boot_guest: Callable[..., libvirt.virDomain]
) -> None:
    this = boot_guest(until="started", vcpus=1, max_vcpus=4)
    other = boot_guest(until="started", vcpus=3, max_vcpus=4, memory_mib=256, max_memory_mib=256)
    host = read_host(embed, this.UUIDString(), parse_definition(config_of(this)))
    assert (host.others_vcpus, host.others_memory_kib) == (3, 256 * 1024)
    other.destroy()
    host = read_host(embed, this.UUIDString(), parse_definition(config_of(this)))
    assert (host.others_vcpus, host.others_memory_kib) == (0, 0)
