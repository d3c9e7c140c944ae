"""A libvirt whose definitions wait for the domain's job, as those newer than 9.0, with QEMUs that are silent as told.

Only what reads of domains ask for. Calls that would wait for QEMU or for the job block for real, until
`wake` or, as those of libvirt that wait for the job, `job_wait_s`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import libvirt

from tests.fakes.libvirt_connection import QuietConnection, libvirt_error
from tests.fakes.worlds import UUID, domain_xml


class BusyDomain:
    """A running domain of 2 of 8 vCPUs; `blocked` counts the calls that wait in it now."""

    def __init__(self, uuid: str, name: str, job_wait_s: float, *, definition_waits: bool) -> None:
        self._uuid = uuid
        self._name = name
        self._job_wait_s = job_wait_s
        self._definition_waits = definition_waits
        self._job = threading.Lock()
        self._awake = threading.Event()
        self._awake.set()
        self._asked_s: float | None = None
        #: another client has the job
        self._kept = False
        self._counting = threading.Lock()
        self.blocked = 0
        self.most_blocked = 0

    # ---- what the world does

    def silence(self, *, kept_for_s: float | None = None) -> None:
        """QEMU stops answering; with `kept_for_s`, another client has been asking it for so long."""
        self._awake.clear()
        if kept_for_s is not None:
            self._job.acquire()
            self._kept, self._asked_s = True, time.monotonic() - kept_for_s

    def take_job(self) -> None:
        """Something long that is not a question to QEMU, such as a start, has the job."""
        self._job.acquire()

    def end_job(self) -> None:
        """That is over."""
        self._job.release()

    def wake(self) -> None:
        """QEMU answers again."""
        self._awake.set()
        if self._kept:
            self._kept, self._asked_s = False, None
            self._job.release()

    # ---- libvirt's calls

    def UUIDString(self) -> str:  # noqa: N802  libvirt's names, here and below
        return self._uuid

    def name(self) -> str:
        return self._name

    def ID(self) -> int:  # noqa: N802
        return 7

    def isActive(self) -> int:  # noqa: N802
        return 1

    def isPersistent(self) -> int:  # noqa: N802
        return 1

    def autostart(self) -> int:
        return 0

    def hasManagedSaveImage(self, _flags: int) -> int:  # noqa: N802
        return 0

    def securityLabel(self) -> tuple[str, bool]:  # noqa: N802
        return "", False

    def messages(self) -> list[str]:
        return []

    def info(self) -> tuple[int, int, int, int, int]:
        return libvirt.VIR_DOMAIN_RUNNING, 512 * 1024, 512 * 1024, 2, 1

    def vcpusFlags(self, flags: int) -> int:  # noqa: N802
        return 8 if flags & libvirt.VIR_DOMAIN_VCPU_MAXIMUM else 2

    def metadata(self, _kind: int, _uri: str, _flags: int) -> str:
        raise libvirt_error(libvirt.VIR_ERR_NO_DOMAIN_METADATA)

    def controlInfo(self) -> tuple[int, int, int]:  # noqa: N802
        asked_s = self._asked_s
        if asked_s is None:
            return libvirt.VIR_DOMAIN_CONTROL_OK, 0, 0
        return libvirt.VIR_DOMAIN_CONTROL_OCCUPIED, 0, int((time.monotonic() - asked_s) * 1000)

    def XMLDesc(self, flags: int) -> str:  # noqa: N802
        if self._definition_waits:
            self._begin_job()
            self._job.release()
        xml = (
            domain_xml(maximum=8, current=2)
            .replace(UUID, self._uuid)
            .replace("instance-00000001", self._name)
        )
        return xml if flags & libvirt.VIR_DOMAIN_XML_INACTIVE else xml.replace("<domain ", "<domain id='7' ")

    def memoryStats(self) -> dict[str, int]:  # noqa: N802
        self._begin_job()
        try:
            self._asked_s = time.monotonic()
            with _Blocked(self):
                assert self._awake.wait(60)
            self._asked_s = None
        finally:
            self._job.release()
        return {"actual": 512 * 1024}

    def _begin_job(self) -> None:
        with _Blocked(self):
            if not self._job.acquire(timeout=self._job_wait_s):
                raise libvirt_error(libvirt.VIR_ERR_OPERATION_TIMEOUT)


class _Blocked:
    def __init__(self, domain: BusyDomain) -> None:
        self._domain = domain

    def __enter__(self) -> None:
        domain = self._domain
        with domain._counting:
            domain.blocked += 1
            domain.most_blocked = max(domain.most_blocked, domain.blocked)

    def __exit__(self, *_: object) -> None:
        with self._domain._counting:
            self._domain.blocked -= 1


class BusyLibvirt(QuietConnection):
    """A host of `BusyDomain`s, and each connection to it."""

    def __init__(self, count: int, *, job_wait_s: float = 30, definition_waits: bool = True) -> None:
        self._definition_waits = definition_waits
        self.domains: Sequence[BusyDomain] = [
            BusyDomain(
                f"{number:08d}-0000-4000-8000-000000000000",
                f"instance-{number}",
                job_wait_s,
                definition_waits=definition_waits,
            )
            for number in range(count)
        ]

    def open(self, _uri: str) -> BusyLibvirt:
        """In the place of `libvirt.open`."""
        return self

    def getLibVersion(self) -> int:  # noqa: N802
        return 11_003_000 if self._definition_waits else 9_000_000

    def getSecurityModel(self) -> tuple[str, str]:  # noqa: N802
        return "none", "0"

    def listAllDomains(self, flags: int) -> Sequence[BusyDomain]:  # noqa: N802
        return self.domains if flags in {0, libvirt.VIR_CONNECT_LIST_DOMAINS_PERSISTENT} else []

    def lookupByUUIDString(self, uuid: str) -> BusyDomain:  # noqa: N802
        for domain in self.domains:
            if domain.UUIDString() == uuid:
                return domain
        raise libvirt_error(libvirt.VIR_ERR_NO_DOMAIN)
