"""libvirt's list of ids, such as `0-3,^2,7`: CPU sets and node sets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hvsvc.domain.xml_document import broken

#: ids that any list may name; a host or a domain has far fewer CPUs and nodes
MAX_IDS = 65536
_ITEM = re.compile(r"(?P<without>\^)?(?P<first>[0-9]{1,9})(?:\s*-\s*(?P<last>[0-9]{1,9}))?", re.ASCII)


def parse_id_list(text: str, element: str = "a list of ids") -> frozenset[int]:
    """The ids of a list: numbers, ranges, and `^` before a number that is left out again.

    :raises FailedPreconditionError: BROKEN_DEFINITION naming `element` when it is no such
        list, names no id at all, or one of 65536 or above.
    """
    ids: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None or (match["without"] and match["last"]):
            raise broken(f"{element} is {text[:60]!r}, not a list of ids such as 0-3,^2,7")
        first = int(match["first"])
        last = int(match["last"] or first)
        if last < first or last >= MAX_IDS:
            raise broken(f"{element} is {text[:60]!r}: ranges rise, and ids are below {MAX_IDS}")
        if match["without"]:
            ids.discard(first)
        else:
            ids.update(range(first, last + 1))
    if not ids:
        raise broken(f"{element} is {text[:60]!r}, which leaves no id")
    return frozenset(ids)


def format_id_list(ids: Iterable[int]) -> str:
    """The shortest list of these ids, as libvirt writes it: ascending, ranges joined."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(ids)):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
