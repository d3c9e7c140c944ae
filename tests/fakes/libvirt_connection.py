"""A libvirt connection for what a real one cannot be made to do on demand: to fail half way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libvirt


def libvirt_error(
    code: int, source: int = libvirt.VIR_FROM_QEMU, text: str = "words"
) -> libvirt.libvirtError:
    """An error as libvirt-python raises it."""
    error = libvirt.libvirtError("unused")
    error.err = (code, source, text, 2, text, None, None, -1, -1)
    return error


class FakeDomain:
    """A running domain that plugs vCPUs one at a time, as libvirt 9.0 does.

    `errors` maps a method's name to what is raised in its place; `plugs` is how many vCPUs the next
    setVcpusFlags adds before its error.
    """

    def __init__(self, uuid: str, *, current: int, maximum: int, plugs: int = 0) -> None:
        self._uuid = uuid
        self.current = current
        self._maximum = maximum
        self._plugs = plugs
        self.errors: dict[str, libvirt.libvirtError] = {}

    def name(self) -> str:
        return "fake"

    def UUIDString(self) -> str:  # noqa: N802  libvirt's name
        return self._uuid

    def isActive(self) -> int:  # noqa: N802
        return 1

    def vcpusFlags(self, flags: int) -> int:  # noqa: N802
        return self._maximum if flags & libvirt.VIR_DOMAIN_VCPU_MAXIMUM else self.current

    def setVcpusFlags(self, vcpus: int, _flags: int) -> int:  # noqa: N802
        if (error := self.errors.get("setVcpusFlags")) is not None:
            self.current += self._plugs
            raise error
        self.current = vcpus
        return 0


class QuietConnection:
    """A connection that lives until it is closed, and is never lost."""

    def isAlive(self) -> int:  # noqa: N802
        return 1

    def registerCloseCallback(self, _callback: Callable[..., None], _opaque: Any) -> None:  # noqa: N802
        return

    def unregisterCloseCallback(self) -> None:  # noqa: N802
        return

    def setKeepAlive(self, _interval: int, _count: int) -> int:  # noqa: N802
        return 0

    def close(self) -> int:
        return 0


class FakeConnection(QuietConnection):
    """A connection with one domain."""

    def __init__(self, domain: FakeDomain) -> None:
        self._domain = domain

    def lookupByUUIDString(self, _uuid: str) -> FakeDomain:  # noqa: N802
        return self._domain
