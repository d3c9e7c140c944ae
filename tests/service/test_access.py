"""The policy on its own; certificates and sockets are in test_tls and test_listening."""

from __future__ import annotations

from typing import Any

import pytest

from hvsvc.errors import NotPermittedError
from hvsvc.service.access import NEEDED, Access, Caller, Role

READS = {"List", "Get", "Watch", "Plan", "Wait"}


@pytest.mark.parametrize("method", sorted(NEEDED))
def test_what_changes_something_needs_admin(method: str) -> None:
    service, name = method[1:].split("/")
    if service.startswith("grpc."):
        assert NEEDED[method] is Role.NONE
    elif any(name.startswith(word) for word in READS):
        assert NEEDED[method] is Role.READER
    else:
        assert NEEDED[method] is Role.ADMIN


def test_an_unknown_method_needs_admin() -> None:
    access = Access({}, unix=Role.ADMIN, plaintext=Role.READER)
    access.check(Caller("unix", Role.ADMIN), "/hvsvc.v1.DomainService/Later")
    with pytest.raises(NotPermittedError) as caught:
        access.check(Caller("unix", Role.READER), "/hvsvc.v1.DomainService/Later")
    assert caught.value.metadata["needed"] == "admin"


class Context:
    """A call as `identify` sees it."""

    def __init__(self, peer: str, **presented: bytes) -> None:
        self._peer, self._presented = peer, presented

    def peer(self) -> str:
        return self._peer

    def auth_context(self) -> dict[str, list[bytes]]:
        return {key: [value] for key, value in self._presented.items()}


@pytest.mark.parametrize(
    ("context", "advice"),
    [
        (Context("unix:"), "set [access] unix_role"),
        (Context("ipv4:127.0.0.1:5"), "set [access] insecure_loopback_role"),
        (
            Context("ipv4:10.0.0.1:5", transport_security_type=b"ssl", peer_dns=b"b.example"),
            "list the name in [access.sans]",
        ),
    ],
    ids=["unix", "loopback", "certificate"],
)
def test_a_refusal_names_the_setting_of_the_door_the_caller_came_by(context: Any, advice: str) -> None:
    access = Access({"b.example": Role.READER}, unix=Role.READER, plaintext=Role.READER)
    with pytest.raises(NotPermittedError) as caught:
        access.check(access.identify(context), "/hvsvc.v1.ScalingService/SetVcpus")
    assert caught.value.message.endswith(f"can {advice}")
