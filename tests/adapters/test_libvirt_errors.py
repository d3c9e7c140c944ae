"""libvirt's codes in hvsvc's words."""

from __future__ import annotations

import libvirt
import pytest

from hvsvc.adapters.libvirt_errors import translate_error, translate_open_error
from hvsvc.errors import HvsvcError, Reason
from tests.fakes.libvirt_connection import libvirt_error

_CODES = {
    name: value
    for name, value in vars(libvirt).items()
    if name.startswith("VIR_ERR_")
    and name not in {"VIR_ERR_NONE", "VIR_ERR_OK", "VIR_ERR_WARNING", "VIR_ERR_ERROR"}
}
_UNAVAILABLE = {
    "NO_MEMORY",
    "UNKNOWN_HOST",
    "NO_CONNECT",
    "INVALID_CONN",
    "RPC",
    "GNUTLS_ERROR",
    "SSH",
    "LIBSSH",
}
_NOT_PERMITTED = {"OPERATION_DENIED", "AUTH_FAILED", "AUTH_CANCELLED", "AUTH_UNAVAILABLE", "ACCESS_DENIED"}
_BUSY = {"OPERATION_TIMEOUT", "OPERATION_ABORTED", "RESOURCE_BUSY"}
_CANNOT = {"NO_SUPPORT", "ARGUMENT_UNSUPPORTED", "OPERATION_UNSUPPORTED"}
_SILENT = {"AGENT_UNRESPONSIVE", "AGENT_UNSYNCED", "AGENT_COMMAND_TIMEOUT"}


def expected(name: str) -> tuple[str, Reason]:
    short = name.removeprefix("VIR_ERR_")
    table = [
        (_UNAVAILABLE, "UNAVAILABLE", Reason.LIBVIRT_UNAVAILABLE),
        (_NOT_PERMITTED, "PERMISSION_DENIED", Reason.LIBVIRT_NOT_PERMITTED),
        (_BUSY, "ABORTED", Reason.DOMAIN_BUSY),
        (_CANNOT, "UNIMPLEMENTED", Reason.HYPERVISOR_REFUSED),
        (_SILENT, "FAILED_PRECONDITION", Reason.AGENT_SILENT),
        ({"NO_DOMAIN"}, "NOT_FOUND", Reason.DOMAIN_NOT_FOUND),
        ({"AGENT_COMMAND_FAILED"}, "FAILED_PRECONDITION", Reason.AGENT_REFUSED),
    ]
    for names, status, reason in table:
        if short in names:
            return status, reason
    return "FAILED_PRECONDITION", Reason.DEFINITION_REFUSED


def test_api_01_the_bindings_list_their_codes() -> None:
    assert len(_CODES) > 100
    assert _CODES["VIR_ERR_NO_DOMAIN"] == 42


@pytest.mark.parametrize("name", sorted(_CODES))
def test_api_01_every_known_code_has_a_meaning_and_none_is_internal(name: str) -> None:
    error = translate_error(libvirt_error(_CODES[name]), "define it", refusal=Reason.DEFINITION_REFUSED)
    assert (error.status, error.reason) == expected(name)
    assert error.metadata["libvirtCode"] == str(_CODES[name])
    assert error.message.startswith("Could not define it: ")


def test_api_01_a_code_of_a_newer_libvirt_is_a_refusal() -> None:
    error = translate_error(libvirt_error(4711), "start it", refusal=Reason.START_FAILED)
    assert (error.status, error.reason) == ("FAILED_PRECONDITION", Reason.START_FAILED)


@pytest.mark.parametrize("code", [libvirt.VIR_ERR_INTERNAL_ERROR, libvirt.VIR_ERR_SYSTEM_ERROR])
def test_vague_codes_of_the_transport_mean_no_connection(code: int) -> None:
    def reason(source: int) -> Reason:
        return translate_error(libvirt_error(code, source), "read it").reason

    assert reason(libvirt.VIR_FROM_RPC) is Reason.LIBVIRT_UNAVAILABLE
    assert reason(libvirt.VIR_FROM_QEMU) is Reason.HYPERVISOR_REFUSED


def test_an_error_of_a_dead_connection_says_nothing_of_the_domain() -> None:
    error = translate_error(libvirt_error(libvirt.VIR_ERR_INVALID_ARG), "read it", alive=False)
    assert error.reason is Reason.LIBVIRT_UNAVAILABLE


def test_cpu_01_the_text_decides_nothing() -> None:
    errors: list[HvsvcError] = [
        translate_error(libvirt_error(libvirt.VIR_ERR_INVALID_ARG, text=text), "set it")
        for text in ("requested vcpus is greater than max allowable vcpus", "Zu viele", "")
    ]
    assert {(error.status, error.reason) for error in errors} == {
        ("FAILED_PRECONDITION", Reason.HYPERVISOR_REFUSED)
    }


@pytest.mark.parametrize("name", sorted(_CODES))
def test_without_a_connection_libvirt_is_unavailable_or_not_permitted(name: str) -> None:
    error = translate_open_error(libvirt_error(_CODES[name]), "qemu:///system")
    denied = name.removeprefix("VIR_ERR_") in _NOT_PERMITTED
    assert error.reason is (Reason.LIBVIRT_NOT_PERMITTED if denied else Reason.LIBVIRT_UNAVAILABLE)
    assert error.status == ("PERMISSION_DENIED" if denied else "UNAVAILABLE")
    assert "qemu:///system" in error.message
