"""Fixtures that give tests real domains.

`define_domain(...)` and `boot_guest(...)` make domains on the session's embedded QEMU driver (see
GuestDomains for what they take); `libvirtd_domains` has the same two methods on a private libvirtd, where
`private_libvirtd.virsh(...)` is the real virsh. Guests take about 5 s to boot: for one shared by a module,
use `with GuestDomains(embed, guest_image, console_dir) as domains`.
"""

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import libvirt
import pytest

from tests.guest_domains import GuestDomains, GuestImage, build_guest
from tests.libvirt_loop import start_event_loop
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot


def pytest_configure() -> None:
    """Started in the background of a script, we inherit that Ctrl-C is ignored, and so would each hvctl under test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_TESTS = Path(__file__).parent
#: folders whose files take minutes; the last ones of a run must be short, or one worker ends alone
_LONG_ONES = ("docs", "end_to_end", "bench", "packaging", "adapters")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files that take long first, in the order above, then those of this folder."""

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(_TESTS).parts[0]
        if folder in _LONG_ONES:
            return _LONG_ONES.index(folder)
        return len(_LONG_ONES) + (item.path.parent != _TESTS)

    items.sort(key=rank)


@pytest.fixture(scope="session")
def guest_image() -> Iterator[GuestImage]:
    """Kernel and initramfs of the small guest, readable by any user."""
    directory = Path(tempfile.mkdtemp(prefix="hv-guest-", dir="/tmp"))
    directory.chmod(0o755)
    yield build_guest(directory)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def embed_root() -> Iterator[EmbedRoot]:
    """The root of the test process's own embedded driver."""
    with EmbedRoot() as root:
        yield root


@pytest.fixture(scope="session")
def embed(embed_root: EmbedRoot) -> Iterator[libvirt.virConnect]:
    """The session's connection to the embedded QEMU driver."""
    start_event_loop()
    connection = libvirt.open(embed_root.uri)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def console_dir(embed_root: EmbedRoot) -> Path:
    """Where guests of the embedded driver write their consoles."""
    directory = embed_root.path / "console"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture
def new_embed_root(embed_root: EmbedRoot) -> Iterator[EmbedRoot]:
    """A fresh root for another process, such as a daemon; what that left running is ended afterwards."""
    with EmbedRoot(capabilities_of=embed_root) as root:
        yield root


@pytest.fixture
def embed_domains(
    embed: libvirt.virConnect, guest_image: GuestImage, console_dir: Path
) -> Iterator[GuestDomains]:
    """Domains on the embedded driver, removed after the test."""
    with GuestDomains(embed, guest_image, console_dir) as domains:
        yield domains


@pytest.fixture
def define_domain(embed_domains: GuestDomains) -> Callable[..., libvirt.virDomain]:
    """`define_domain(max_vcpus=4, ...)` defines a domain and does not start it."""
    return embed_domains.define


@pytest.fixture
def boot_guest(embed_domains: GuestDomains) -> Callable[..., libvirt.virDomain]:
    """`boot_guest(words="noga", ...)` defines a domain and boots the guest in it."""
    return embed_domains.boot


@pytest.fixture(scope="session")
def private_libvirtd() -> Iterator[PrivateLibvirtd]:
    """A libvirtd of the session's own."""
    start_event_loop()
    daemon = PrivateLibvirtd()
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture
def libvirtd_domains(private_libvirtd: PrivateLibvirtd, guest_image: GuestImage) -> Iterator[GuestDomains]:
    """Domains on the private libvirtd, removed after the test."""
    connection = libvirt.open(private_libvirtd.uri)
    try:
        with GuestDomains(connection, guest_image, private_libvirtd.path) as domains:
            yield domains
    finally:
        connection.close()
