"""A file is taken whole or refused with every fault in it, by key, value and what is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hvsvc.config import load_config
from hvsvc.errors import InvalidArgumentError, Reason


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hvsvc.toml"


def faults(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(InvalidArgumentError) as caught:
        load_config(path)
    assert caught.value.reason is Reason.INVALID_VALUE
    assert caught.value.metadata["file"] == str(path)
    lines = caught.value.message.split("\n")
    assert caught.value.metadata["faults"] == str(len(lines))
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_a_whole_file_is_taken(path: Path, tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem", "ca.pem"):
        (tmp_path / name).touch()
    path.write_text(f"""
        [libvirt]
        uri = "qemu:///embed?root=/tmp/x"
        call_timeout_s = 5
        [listen]
        unix = "/tmp/hvsvc.sock"
        unix_mode = 0o600
        unix_group = "root"
        tcp = "[::]:9443"
        [tls]
        cert = "{tmp_path}/cert.pem"
        key = "{tmp_path}/key.pem"
        client_ca = "{tmp_path}/ca.pem"
        [access.sans]
        "ops.example.org" = "admin"
        "spiffe://example.org/monitor" = "reader"
        [nova]
        cloud = "prod"
        [journal]
        path = "/tmp/journal.db"
        """)
    config = load_config(path)
    assert config.libvirt.uri == "qemu:///embed?root=/tmp/x"
    assert config.libvirt.call_timeout_s == 5.0
    assert (config.listen.unix_mode, config.listen.unix_group, config.listen.tcp) == (
        0o600,
        "root",
        "[::]:9443",
    )
    assert config.tls is not None
    assert config.tls.client_ca == tmp_path / "ca.pem"
    assert config.access.sans == {"ops.example.org": "admin", "spiffe://example.org/monitor": "reader"}
    assert config.nova is not None
    assert config.nova.cloud == "prod"
    assert config.nova.reboot_timeout_s == 300
    assert config.journal.path == Path("/tmp/journal.db")


def test_the_environment_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URI", "LIBVIRT", "LIBVIRT__URI", "HVSVC_LIBVIRT__URI"):
        monkeypatch.setenv(name, "qemu:///session")
    path.write_text("")
    assert load_config(path).libvirt.uri == "qemu:///system"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "[libvirt]\ncall_timeout_s = 0",
            "[libvirt] call_timeout_s = 0 is not allowed; allowed: 1 to 600",
        ),
        (
            "[libvirt]\ncall_timeout_s = nan",
            "[libvirt] call_timeout_s = NaN is not allowed; allowed: 1 to 600",
        ),
        (
            "[libvirt]\ncall_timeout_s = inf",
            "[libvirt] call_timeout_s = Infinity is not allowed; allowed: 1 to 600",
        ),
        (
            '[libvirt]\ncall_timeout_s = "5"',
            '[libvirt] call_timeout_s = "5" is not allowed; allowed: 1 to 600',
        ),
        (
            "[libvirt]\ncall_timeout_s = true",
            "[libvirt] call_timeout_s = true is not allowed; allowed: 1 to 600",
        ),
        (
            "[listen]\nunix_mode = 0o777",
            "[listen] unix_mode = 0o777 is not allowed; allowed: 0o600 to 0o770: octal, nothing for others",
        ),
        (
            "[listen]\nunix_mode = true",
            "[listen] unix_mode = true is not allowed; allowed: 0o600 to 0o770: octal, nothing for others",
        ),
        (
            "[libvirt]\nkeepalive_count = 1.5",
            "[libvirt] keepalive_count = 1.5 is not allowed; allowed: 1 to 20, whole",
        ),
        (
            "[libvirt]\nkeepalive_count = true",
            "[libvirt] keepalive_count = true is not allowed; allowed: 1 to 20, whole",
        ),
        (
            '[libvirt]\nuri = "qemu+ssh://other/system"',
            (
                '[libvirt] uri = "qemu+ssh://other/system" is not allowed; allowed: '
                '"qemu:///…", "qemu+unix:///…" or "test:///…": a hypervisor of this host'
            ),
        ),
        (
            "[libvirt]\ncall_timeot_s = 5",
            "[libvirt] call_timeot_s is not known; did you mean call_timeout_s?",
        ),
        ("[log]\nzzz = 5", "[log] zzz is not known; known: level, format"),
        ("[libvrt]\nuri = 5", "[libvrt] is not known; did you mean libvirt?"),
        ("libvirt = 5", "libvirt = 5 is not allowed: [libvirt] is a table"),
        ("[[nova]]\ncloud = 'x'", 'nova = [{"cloud": "x"}] is not allowed: [nova] is a table'),
        (
            "[nova]",
            '[nova] cloud is missing; allowed: a name in clouds.yaml, or "envvars" for the OS_* environment',
        ),
        (
            '[nova]\ncloud = " "',
            '[nova] cloud = " " is not allowed; allowed: a name in clouds.yaml, or "envvars" for the OS_* environment',
        ),
        (
            '[access.sans]\n"" = "admin"',
            '[access.sans] "" = "admin" is not allowed; allowed: a table `"NAME" = "admin"` or `"NAME" = "reader"`',
        ),
        (
            '[access.sans]\n"a" = "root"',
            '[access.sans] "a" = "root" is not allowed; allowed: a table `"NAME" = "admin"` or `"NAME" = "reader"`',
        ),
        ('[access]\nunix_role = ""', '[access] unix_role = "" is not allowed; allowed: "admin" or "reader"'),
        (
            '[listen]\ntcp = "0.0.0.0:9443"\n[access.sans]\n"a" = "admin"',
            (
                '[listen] tcp = "0.0.0.0:9443" needs [tls] with cert, key and client_ca; without TLS only '
                "[listen] insecure_loopback_tcp is allowed"
            ),
        ),
        (
            '[placement]\npolicy = "enforce"',
            '[placement] policy = "enforce" needs [nova] with a cloud; without one nobody can be asked',
        ),
        (
            "[limits]\npage_size = 50\nmax_page_size = 10",
            "[limits] page_size = 50 exceeds max_page_size = 10; lower the one or raise the other",
        ),
        (
            "[drift]\nbackoff_s = 700",
            "[drift] backoff_s = 700 exceeds max_backoff_s = 600; lower the one or raise the other",
        ),
        (
            f'[log]\nlevel = "{"x" * 200}"',
            f'[log] level = "{"x" * 79}… is not allowed; allowed: "debug", "info", "warning" or "error"',
        ),
    ],
)
def test_a_fault_is_told_by_key_value_and_what_is_allowed(path: Path, text: str, fault: str) -> None:
    assert faults(path, text) == [fault]


def test_tcp_without_a_single_caller_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "x.pem").touch()
    tls = "".join(f'{key} = "{tmp_path}/x.pem"\n' for key in ("cert", "key", "client_ca"))
    (fault,) = faults(path, f'[listen]\ntcp = "0.0.0.0:9443"\n[tls]\n{tls}')
    assert fault == (
        '[listen] tcp = "0.0.0.0:9443" needs at least one caller in [access.sans]; as it stands nobody could do '
        "anything there"
    )


def test_all_faults_are_told_at_once(path: Path) -> None:
    found = faults(
        path,
        '[libvirt]\nuri = "x"\n[guest]\nagent_timeout_s = 0\nzzz = 1\n[tls]\ncert = "/nonexistent"\n[nowhere]',
    )
    assert [fault.split(" is ")[0] for fault in found] == [
        '[libvirt] uri = "x"',
        "[guest] agent_timeout_s = 0",
        "[guest] zzz",
        '[tls] cert = "/nonexistent"',
        "[tls] key",
        "[tls] client_ca",
        "[nowhere]",
    ]


@pytest.mark.parametrize("text", ["libvirt", "[libvirt", 'a = "', "a = 1\na = 2"])
def test_what_is_not_toml_is_told(path: Path, text: str) -> None:
    (fault,) = faults(path, text)
    assert fault.startswith("is not TOML: ")


def test_what_is_not_utf8_is_told(path: Path) -> None:
    path.write_bytes(b'[libvirt]\nuri = "\xff"')
    with pytest.raises(InvalidArgumentError, match="is not TOML"):
        load_config(path)


def test_a_file_that_cannot_be_read_is_told(path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file or directory"):
        load_config(path)
    path.mkdir()
    with pytest.raises(InvalidArgumentError, match="cannot be read: Is a directory"):
        load_config(path)


def test_a_file_of_another_user_is_told(path: Path) -> None:
    path.touch(mode=0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read every file, nobody may not
    try:
        with pytest.raises(InvalidArgumentError, match="cannot be read: Permission denied"):
            load_config(path)
    finally:
        os.seteuid(user)
