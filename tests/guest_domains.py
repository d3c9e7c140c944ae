"""Domains for tests: made from one template, booted with the small guest of tests/guest, removed again."""

import itertools
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Any, Literal, Self
from xml.sax.saxutils import escape

import libvirt
import libvirt_qemu

# Linux since commit adbf61cc47cb (2025), and the stable kernels that took it over, ignore CPUs that the
# firmware lists as not yet there, unless they know the hypervisor; QEMU without KVM is none that they know.
# So the template shows them one by QEMU's VMware port: a serial number, and no hypervisor bit. With KVM
# nothing of this is needed.
_TEMPLATE = Template((Path(__file__).parent / "data/xml/guest.xml.in").read_text())
_BUILD = Path(__file__).parent / "guest/build.sh"
_AGENT = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"

# About 5 s on an idle machine; the rest is for busy ones. A bound, never a measure.
BOOT_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class GuestImage:
    """The guest's kernel and initramfs."""

    kernel: Path
    initrd: Path


def build_guest(directory: Path) -> GuestImage:
    """Build the guest into `directory`, or copy it from the build cache."""
    subprocess.run([_BUILD, directory], check=True)
    return GuestImage(directory / "vmlinuz", directory / "initrd.img")


class GuestDomains:
    """The domains one test, module or session makes on a connection.

    Leaving the `with` block destroys and undefines all of them.
    """

    _number = itertools.count(1)

    def __init__(self, connection: libvirt.virConnect, image: GuestImage, directory: Path) -> None:
        """`directory` takes the console logs; QEMU's user must be able to write there."""
        self.connection = connection
        self._image = image
        self._directory = directory
        self._made: list[str] = []

    def render_xml(
        self,
        *,
        name: str | None = None,
        vcpus: int = 2,
        max_vcpus: int = 8,
        memory_mib: int = 512,
        max_memory_mib: int = 1024,
        topology: Mapping[str, int] | None = None,
        machine: str = "pc",
        words: str = "nocpuauto",
        acpi: bool = True,
        agent: bool = True,
        balloon: Literal["virtio", "none"] = "virtio",
        cpu_model: str = "qemu64",
        metadata: str = "",
        devices: str = "",
    ) -> str:
        """The XML of a domain of 2 of 8 vCPUs and 512 of 1024 MiB, or as asked.

        `topology` defaults to one socket a vCPU, an empty mapping leaves the element out. `words` goes on the
        kernel's command line, where tests/guest/init lists what it knows. `metadata` and `devices` are
        XML put into these elements as it is.
        """
        name = name or f"guest-{next(self._number)}"
        if topology is None:
            topology = {"sockets": max_vcpus, "cores": 1, "threads": 1}
        factors = " ".join(f"{key}='{value}'" for key, value in topology.items())
        return _TEMPLATE.substitute(
            name=escape(name),
            uuid=uuid.uuid4(),
            metadata=metadata,
            vcpus=vcpus,
            max_vcpus=max_vcpus,
            memory_mib=memory_mib,
            max_memory_mib=max_memory_mib,
            machine=machine,
            kernel=self._image.kernel,
            initrd=self._image.initrd,
            words=escape(words),
            acpi="<acpi/>" if acpi else "",
            cpu_model=cpu_model,
            topology=f"<topology {factors}/>" if factors else "",
            console=self.console_path(name),
            agent=_AGENT if agent else "",
            balloon=balloon,
            stats="<stats period='1'/>" if balloon == "virtio" else "",
            devices=devices,
        )

    def define(self, *, edit: Callable[[str], str] = str, **wanted: Any) -> libvirt.virDomain:
        """Define a domain as `render_xml` describes it; `edit` may change the XML before that.

        It is not started.
        """
        domain = self.connection.defineXML(edit(self.render_xml(**wanted)))
        self._made.append(domain.UUIDString())
        return domain

    def boot(
        self, *, until: Literal["started", "booted", "settled"] = "settled", **wanted: Any
    ) -> libvirt.virDomain:
        """Define a domain, start it, and wait.

        "started": QEMU runs. "booted": the guest said so on its console, and its agent answers if it has one.
        "settled": the balloon is also down at the configured current memory.
        """
        domain = self.define(**wanted)
        domain.create()
        if until != "started":
            self.wait_until_booted(
                domain, agent=wanted.get("agent", True) and "noga" not in wanted.get("words", "")
            )
        if (
            until == "settled"
            and wanted.get("balloon") != "none"
            and "noballoon" not in wanted.get("words", "")
        ):
            target_kib = wanted.get("memory_mib", 512) * 1024
            # libvirt's own figure, which dominfo prints, follows QEMU's by up to a second
            wait_for(
                lambda: domain.memoryStats().get("actual") == domain.info()[2] == target_kib,
                f"balloon of {domain.name()} at {target_kib} KiB",
            )
        return domain

    def wait_until_booted(
        self, domain: libvirt.virDomain, *, agent: bool = True, timeout_s: float = BOOT_TIMEOUT_S
    ) -> None:
        """Wait for the guest's BOOTED line, and for an answer of its agent.

        About one boot in some hundred hangs for good in the kernel, a soft lockup under TCG on a busy host:
        one that is not done after `timeout_s` is started afresh, once.
        """
        try:
            self._wait_booted_line(domain, timeout_s)
        except AssertionError:
            print(f"{domain.name()} hangs while it boots:\n{self.read_console(domain)[-2000:]}")
            if domain.isActive():  # QEMU may have ended meanwhile
                domain.destroy()
            domain.create()
            self._wait_booted_line(domain, BOOT_TIMEOUT_S)
        if agent:
            wait_for(lambda: is_agent_up(domain), f"the agent of {domain.name()}")

    def _wait_booted_line(self, domain: libvirt.virDomain, timeout_s: float) -> None:
        what = f"BOOTED on the console of {domain.name()}"
        wait_for(lambda: "BOOTED" in self.read_console(domain), what, timeout_s)

    def console_path(self, name: str) -> Path:
        """Where the domain of that name has its serial console."""
        return self._directory / f"{name}.console"

    def read_console(self, domain: libvirt.virDomain) -> str:
        """What the guest printed so far."""
        path = self.console_path(domain.name())
        return path.read_text(errors="replace") if path.exists() else ""

    def remove(self, domain: libvirt.virDomain) -> None:
        """Destroy and undefine one domain made here, if it is still there."""
        self._made.remove(domain.UUIDString())
        self._end(domain.UUIDString())

    def remove_all(self) -> None:
        """Destroy and undefine every domain made here that is still there."""
        while self._made:
            self._end(self._made.pop())

    def _end(self, uuid: str) -> None:
        try:
            domain = self.connection.lookupByUUIDString(uuid)
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            return
        if domain.isActive():
            domain.destroy()
        if domain.isPersistent():
            domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove_all()


def ask_agent(domain: libvirt.virDomain, command: str, timeout_s: int = 10, **arguments: Any) -> Any:
    """What the guest agent returns for a command, past everything that is under test."""
    request = json.dumps({"execute": command, "arguments": arguments})
    return json.loads(libvirt_qemu.qemuAgentCommand(domain, request, timeout_s, 0))["return"]


def is_agent_up(domain: libvirt.virDomain) -> bool:
    """Whether the guest agent answers a ping."""
    try:
        ask_agent(domain, "guest-ping", timeout_s=5)
    except libvirt.libvirtError as err:
        if err.get_error_code() not in {libvirt.VIR_ERR_AGENT_UNRESPONSIVE, libvirt.VIR_ERR_AGENT_UNSYNCED}:
            raise
        return False
    return True


def read_guest_cpus(domain: libvirt.virDomain) -> dict[int, bool]:
    """The guest's CPUs and which are online, from the guest itself."""
    return {cpu["logical-id"]: cpu["online"] for cpu in ask_agent(domain, "guest-get-vcpus")}


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = BOOT_TIMEOUT_S) -> None:
    """Poll until the condition holds; fail the test, naming `what`, when the bound passes."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout_s:g} s still no {what}")
        time.sleep(0.1)
