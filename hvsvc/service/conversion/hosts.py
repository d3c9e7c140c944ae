"""A host and the sum of its domains to their message."""

from __future__ import annotations

from hvsvc.domain.host_room import HostRoom
from hvsvc.service.conversion.domains import timestamp
from hvsvc.v1 import domain_pb2


def to_host(room: HostRoom, read_time_s: float) -> domain_pb2.Host:
    """Every figure."""
    return domain_pb2.Host(
        pcpus=room.resources.pcpus,
        memory_kib=room.resources.memory_kib,
        vcpu_capacity=room.vcpu_capacity,
        memory_capacity_kib=room.memory_capacity_kib,
        running_domains=room.running_domains,
        current_vcpus=room.current_vcpus,
        maximum_vcpus=room.maximum_vcpus,
        current_memory_kib=room.current_memory_kib,
        maximum_memory_kib=room.maximum_memory_kib,
        vcpus_left=room.vcpus_left,
        memory_left_kib=room.memory_left_kib,
        read_time=timestamp(read_time_s),
    )
