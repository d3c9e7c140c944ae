"""The next step for a reason."""

from __future__ import annotations

import re

import pytest

from hvsvc.errors import Reason
from hvsvc.hvctl.hints import BY_REASON, BY_STATUS, hint_for
from hvsvc.hvctl.main import COMMANDS, cli


def test_the_hint_names_the_option() -> None:
    assert "--reboot soft" in hint_for("FAILED_PRECONDITION", "REBOOT_REQUIRED", "")


def test_the_hint_names_the_domain_where_it_is_known() -> None:
    assert hint_for("", "PENDING_REBOOT", "", domain="web-1") == "hvctl reboot web-1 brings it into effect"
    assert "hvctl reboot 'my web; x' brings" in hint_for("", "PENDING_REBOOT", "", domain="my web; x")
    assert "hvctl reboot DOMAIN brings" in hint_for("", "PENDING_REBOOT", "")


def test_no_connection_names_the_target() -> None:
    assert "--target (host-1:9443)" in hint_for("UNAVAILABLE", "", "host-1:9443")
    assert "--cloud-target (host-1:9443)" in hint_for("UNAVAILABLE", "", "host-1:9443", located=True)


def test_no_connection_says_what_the_port_may_want() -> None:
    bare = hint_for("UNAVAILABLE", "", "h:9443", connection="over TLS without a certificate")
    assert bare.startswith("hvsvc takes only clients with a certificate: give --tls-cert and --tls-key")
    plain = hint_for("UNAVAILABLE", "", "h:9443", connection="in plaintext")
    assert "the port may want TLS" in plain
    assert "who signed" in hint_for("UNAVAILABLE", "", "h:9443", connection="over TLS")


def test_where_the_ceiling_is_stored_and_pending_the_hint_is_to_reboot() -> None:
    asked = ("FAILED_PRECONDITION", "ABOVE_LIVE_CEILING", "")
    assert "hvctl reboot web-1" in hint_for(*asked, domain="web-1", pending=True)
    assert "raise" not in hint_for(*asked, domain="web-1", pending=True)
    assert "hvctl raise web-1" in hint_for(*asked, domain="web-1")


def test_sockets_that_do_not_fit_name_the_other_topology() -> None:
    assert "--topology cores" in hint_for("INVALID_ARGUMENT", "TOPOLOGY_NOT_FACTORABLE", "")


def test_a_reason_of_the_service_is_not_taken_for_a_lost_connection() -> None:
    assert hint_for("UNAVAILABLE", "NOVA_UNAVAILABLE", "host-1:9443") == ""
    assert hint_for("UNAVAILABLE", "A_REASON_OF_TOMORROW", "host-1:9443") == ""


@pytest.mark.parametrize("text", [*BY_REASON.values(), *BY_STATUS.values()])
def test_every_command_and_option_in_a_hint_exists(text: str) -> None:
    commands = {name: cli.get_command(None, name) for name in COMMANDS}  # type: ignore[arg-type]
    options = {
        opt for command in commands.values() if command for param in command.params for opt in param.opts
    }
    for name in re.findall(r"hvctl ([a-z]+)", text):
        assert name in commands
    for option in re.findall(r"--[a-z-]+", text):
        assert option in options | {"--help", "--running"}


def test_hints_are_for_reasons_that_exist() -> None:
    assert set(BY_REASON) <= set(Reason)
