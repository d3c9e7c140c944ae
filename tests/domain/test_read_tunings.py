"""What binds single vCPUs or the memory to something of the host."""

import pytest

from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.read_tunings import read_tied_vcpus
from hvsvc.domain.xml_document import parse_document
from hvsvc.errors import FailedPreconditionError
from tests.domain.golden import read_case, small_domain

CACHE = "<cachetune vcpus='0-1'><cache id='0' level='3' type='both' size='3' unit='MiB'/></cachetune>"
BANDWIDTH = "<memorytune vcpus='3'><node id='0' bandwidth='60'/></memorytune>"


def test_numa_05_every_vcpu_that_something_names_is_tied() -> None:
    assert read_tied_vcpus(parse_document(read_case("numa-05-pinned"))) == {0, 1, 2, 3}
    found = small_domain(more=f"<cputune><shares>2</shares>{CACHE}{BANDWIDTH}</cputune>")
    assert read_tied_vcpus(parse_document(found)) == {0, 1, 3}
    assert parse_definition(found).vcpu_tunings == ("cachetune 0-1", "memorytune 3")


def test_shares_and_threads_of_the_emulator_tie_no_vcpu() -> None:
    more = (
        "<cputune><shares>2</shares><emulatorpin cpuset='0'/><iothreadpin iothread='1' cpuset='0'/></cputune>"
    )
    found = parse_definition(small_domain(more=more))
    assert (found.vcpu_pins, found.vcpu_tunings) == ((), ())


def test_numatune_is_read_in_words() -> None:
    tune = "<memory mode='strict' nodeset='0-1'/><memnode cellid='0' mode='strict' nodeset='1'/>"
    found = parse_definition(small_domain(more=f"<numatune>{tune}</numatune>"))
    assert found.numa_tunings == ("memory strict 0-1", "memnode 0 strict 1")
    assert parse_definition(read_case("nova-26")).numa_tunings == ()


def test_the_smallest_memory_limit_is_read() -> None:
    tune = "<hard_limit unit='G'>2</hard_limit><soft_limit>1</soft_limit><swap_hard_limit unit='G'>3</swap_hard_limit>"
    assert parse_definition(small_domain(more=f"<memtune>{tune}</memtune>")).memory_limit_kib == 2097152
    assert parse_definition(small_domain()).memory_limit_kib is None


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ("<vcpupin cpuset='0'/>", "<vcpupin> lacks the attribute vcpu"),
        ("<vcpupin vcpu='0'/>", "<vcpupin> lacks the attribute cpuset"),
        ("<vcpupin vcpu='x' cpuset='0'/>", "vcpu of <vcpupin>"),
        ("<vcpupin vcpu='99999999999' cpuset='0'/>", "vcpu of <vcpupin>"),
        ("<vcpupin vcpu='0' cpuset='0-4294967295'/>", "cpuset of <vcpupin>"),
    ],
)
def test_broken_pins_are_refused(tune: str, words: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        parse_definition(small_domain(more=f"<cputune>{tune}</cputune>"))
    assert words in caught.value.message
