"""The policy on its own; certificates and sockets are in test_tls and test_listening."""

from __future__ import annotations

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
