"""Values of the settings: addresses, paths, names; each refuses with ValueError what it is not."""

from __future__ import annotations

import grp
import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FilePath

Role = Literal["admin", "reader"]

#: sun_path of a Linux socket address is 108 bytes with its final NUL
SOCKET_PATH_BYTES = 107


def _local_uri(uri: str) -> str:
    if not re.fullmatch(r"(qemu|qemu\+unix|test):///\S+", uri):
        raise ValueError
    return uri


def split_address(address: str) -> tuple[str, int]:
    """Splits `HOST:PORT` or `[IPV6]:PORT`.

    :raises ValueError: it is neither, or the port is not 0 to 65535.
    """
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]/]+)):([0-9]{1,5})", address)
    if not found or int(found[3]) > 65535:
        raise ValueError(address)
    if found[1]:
        ipaddress.IPv6Address(found[1])
    return found[1] or found[2], int(found[3])


def _address(address: str) -> str:
    split_address(address)
    return address


def _is_loopback(address: str) -> bool:
    host, _ = split_address(address)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _loopback_address(address: str) -> str:
    if not _is_loopback(address):
        raise ValueError
    return address


def _socket_path(path: str) -> str:
    if not path.startswith("/") or "\0" in path or len(path.encode()) > SOCKET_PATH_BYTES:
        raise ValueError
    return path


def _socket_mode(mode: int) -> int:
    if not 0 <= mode <= 0o777 or mode & 0o007 or mode & 0o600 != 0o600:
        raise ValueError
    return mode


def _group(name: str) -> str:
    try:
        grp.getgrnam(name)
    except (KeyError, ValueError) as err:
        raise ValueError from err
    return name


def _absolute(path: Path) -> Path:
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError
    return path


LocalUri = Annotated[str, AfterValidator(_local_uri)]
SocketPath = Annotated[str, AfterValidator(_socket_path)]
SocketMode = Annotated[int, AfterValidator(_socket_mode)]
Group = Annotated[str, AfterValidator(_group)]
Address = Annotated[str, AfterValidator(_address)]
LoopbackAddress = Annotated[str, AfterValidator(_address), AfterValidator(_loopback_address)]
Name = Annotated[str, Field(min_length=1, pattern=r"^\S(.*\S)?$")]
AbsolutePath = Annotated[Path, Field(strict=False), AfterValidator(_absolute)]
PemFile = Annotated[FilePath, Field(strict=False)]
