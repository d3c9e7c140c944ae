"""Addresses, paths and names: what is one and what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError

from hvsvc.config.values import (
    SOCKET_PATH_BYTES,
    AbsolutePath,
    Address,
    Group,
    LocalUri,
    LoopbackAddress,
    Name,
    SocketMode,
    SocketPath,
    split_address,
)

TAKEN: list[tuple[Any, list[Any]]] = [
    (
        LocalUri,
        ["qemu:///system", "qemu:///embed?root=/x", "qemu+unix:///system?socket=/run/x", "test:///default"],
    ),
    (Address, ["0.0.0.0:9443", "[::]:0", "[::1]:65535", "host.example.org:1", "localhost:80"]),
    (LoopbackAddress, ["127.0.0.1:80", "127.8.9.1:80", "[::1]:80", "localhost:80"]),
    (SocketPath, ["/run/hvsvc.sock", "/" + "x" * (SOCKET_PATH_BYTES - 1)]),
    (SocketMode, [0o600, 0o660, 0o620, 0o770]),
    (Group, ["root"]),
    (Name, ["a", "a b", "spiffe://x/y"]),
    (AbsolutePath, ["/var/lib/x.db"]),
]

REFUSED: list[tuple[Any, list[Any]]] = [
    (LocalUri, ["", "qemu:///", "qemu://host/system", "qemu+tls:///system", "xen:///system", "qemu:///a b"]),
    (
        Address,
        [
            *(
                "",
                ":80",
                "host",
                "host:",
                "host:65536",
                "host:-1",
                "::1:80",
                "[::1]",
                "[zz]:80",
                "[1.2.3.4]:80",
            ),
            *("http://host:80", "a b:80", "host:80\n", "host:٨٠", "host: 80"),
        ],
    ),
    (
        LoopbackAddress,
        ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "localhost.example.org:80", "host:80", "127.1:80"],
    ),
    (SocketPath, ["", "hvsvc.sock", "/" + "x" * SOCKET_PATH_BYTES, "/" + "ü" * 60, "/a\0b", "@abstract"]),
    (SocketMode, [660, 0o666, 0o661, 0o460, 0o060, 0, -1, 0o1660, True]),
    (Group, ["", "no-such-group", "root\0"]),
    (Name, ["", " ", " a", "a ", "a\n"]),
    (AbsolutePath, ["", "x.db", "./x.db", "/a\0b"]),
]


def adapter(kind: Any) -> TypeAdapter[Any]:
    """Checks as a section of the file does."""
    return TypeAdapter(kind, config=ConfigDict(strict=True))


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in TAKEN for value in values])
def test_taken_as_it_is(kind: Any, value: Any) -> None:
    found = adapter(kind).validate_python(value)
    assert (str(found) if kind is AbsolutePath else found) == value


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in REFUSED for value in values])
def test_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValidationError):
        adapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("address", "parts"),
    [("0.0.0.0:9443", ("0.0.0.0", 9443)), ("[::1]:0", ("::1", 0)), ("a.b:80", ("a.b", 80))],
)
def test_an_address_is_split(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts
