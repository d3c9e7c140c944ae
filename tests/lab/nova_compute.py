#!/usr/bin/python3
"""nova-compute, unchanged but for one thing: it reports 16 host CPUs to Placement.

With the real count (2 on a small test machine) a flavor of more CPUs than the host would never be scheduled,
because an allocation ratio does not raise the most that one server may ask for (Placement's max_unit).
"""

import sys

from nova.cmd.compute import main  # type: ignore[import-not-found]
from nova.virt.libvirt.driver import LibvirtDriver  # type: ignore[import-not-found]

if not hasattr(LibvirtDriver, "_get_vcpu_available"):
    sys.exit("this Nova has no LibvirtDriver._get_vcpu_available: adapt tests/lab/nova_compute.py")
LibvirtDriver._get_vcpu_available = lambda self: set(range(16))
sys.exit(main())
