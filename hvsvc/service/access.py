"""Who calls, and what they may do.

Writing to libvirt equals root on the host, so this is the real boundary: a remote
caller is known by the subject alternative names of its certificate (which gRPC has
verified against the client CA), a local one by being able to open the unix socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import grpc

from hvsvc.errors import NotPermittedError, Reason, UnauthenticatedError


class Role(IntEnum):
    """What a caller may do; each role includes those before it."""

    #: proved who it is and is on no list: health and reflection only
    NONE = 0
    READER = 1
    ADMIN = 2


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: `identity` is what the journal and the log keep."""

    identity: str
    role: Role
    #: how the operator of the host gives a role by this door
    grant: str = field(default="list the name in [access.sans]", compare=False)


#: who made the call that runs in this task
current_caller: ContextVar[Caller] = ContextVar("current_caller")

#: what each RPC needs; one that is missing here needs ADMIN
NEEDED: Final[Mapping[str, Role]] = {
    "/hvsvc.v1.DomainService/ListDomains": Role.READER,
    "/hvsvc.v1.DomainService/GetDomain": Role.READER,
    "/hvsvc.v1.DomainService/WatchDomains": Role.READER,
    "/hvsvc.v1.DomainService/GetHost": Role.READER,
    "/hvsvc.v1.DriftService/GetDrift": Role.READER,
    "/hvsvc.v1.DriftService/ListDrifts": Role.READER,
    "/hvsvc.v1.DriftService/SetReapplyPolicy": Role.ADMIN,
    "/hvsvc.v1.DriftService/ForgetDesiredState": Role.ADMIN,
    "/hvsvc.v1.ScalingService/PlanScale": Role.READER,
    "/hvsvc.v1.ScalingService/RaiseCeiling": Role.ADMIN,
    "/hvsvc.v1.ScalingService/SetVcpus": Role.ADMIN,
    "/hvsvc.v1.ScalingService/SetMemory": Role.ADMIN,
    "/hvsvc.v1.ScalingService/ScaleDomain": Role.ADMIN,
    "/hvsvc.v1.ScalingService/RebootDomain": Role.ADMIN,
    "/hvsvc.v1.OperationService/WatchOperation": Role.READER,
    "/google.longrunning.Operations/GetOperation": Role.READER,
    "/google.longrunning.Operations/ListOperations": Role.READER,
    "/google.longrunning.Operations/WaitOperation": Role.READER,
    "/google.longrunning.Operations/CancelOperation": Role.ADMIN,
    "/google.longrunning.Operations/DeleteOperation": Role.ADMIN,
    "/grpc.health.v1.Health/Check": Role.NONE,
    "/grpc.health.v1.Health/Watch": Role.NONE,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Role.NONE,
}

#: auth_context keys of the names gRPC verified, and what an identity calls them
_NAME_KINDS: Final = (("peer_uri", "uri"), ("peer_dns", "dns"), ("peer_email", "email"), ("peer_ip", "ip"))


class Access:
    """The policy: roles of names in client certificates, and of callers that have none.

    :param names: roles by subject alternative name (DNS name, URI, e-mail or IP address), compared exactly.
    :param unix: role of whoever can open the unix socket.
    :param plaintext: role of callers on a plaintext loopback listener.
    """

    def __init__(self, names: Mapping[str, Role], *, unix: Role, plaintext: Role) -> None:
        self._names = names
        self._unix = Caller("unix", unix, "set [access] unix_role")
        self._plaintext = Caller("loopback", plaintext, "set [access] insecure_loopback_role")

    def identify(self, context: grpc.aio.ServicerContext[Any, Any]) -> Caller:
        """Who calls.

        :raises UnauthenticatedError: NOT_AUTHENTICATED for a verified certificate without any name.
        """
        presented = context.auth_context()
        if b"ssl" in presented.get("transport_security_type", ()):
            return self._certified(presented)
        return self._unix if context.peer().startswith("unix:") else self._plaintext

    def check(self, caller: Caller, method: str) -> None:
        """Lets the call through or refuses it.

        :raises NotPermittedError: NOT_PERMITTED where the role does not reach.
        """
        needed = NEEDED.get(method, Role.ADMIN)
        if caller.role < needed:
            raise NotPermittedError(
                Reason.NOT_PERMITTED,
                f"{caller.identity} has role {caller.role.name.lower()}; this call needs"
                f" {needed.name.lower()}: the operator of this host can {caller.grant}",
                {"caller": caller.identity, "role": caller.role.name.lower(), "needed": needed.name.lower()},
            )

    def _certified(self, presented: Mapping[str, Iterable[bytes]]) -> Caller:
        names = [
            (kind, raw.decode("utf-8", "replace"))
            for key, kind in _NAME_KINDS
            for raw in presented.get(key, ())
        ]
        if not names:
            raise UnauthenticatedError(
                Reason.NOT_AUTHENTICATED,
                "the client certificate has no subject alternative name; use one with a DNS name or a URI",
            )
        kind, name = max(names, key=lambda each: self._names.get(each[1], Role.NONE))
        return Caller(f"{kind}:{name}", self._names.get(name, Role.NONE))
