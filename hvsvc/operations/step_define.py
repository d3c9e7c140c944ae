"""Step DEFINE_CONFIG: one define of the stored definition, read back."""

from __future__ import annotations

from hvsvc.domain.edit_definition import lost_by_define
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Step
from hvsvc.errors import FailedPreconditionError, Reason
from hvsvc.operations.context import Context, Evidence, Tools
from hvsvc.operations.wait_domain import read_changed

_NAMED = ("maximum_vcpus", "current_vcpus", "topology", "memory_kib", "current_memory_kib", "numa_cells")


async def define_config(tools: Tools, context: Context, step: Step) -> Evidence:
    """Keeps the definition in force, replaces it, and compares what libvirt stored with what was sent.

    :raises AbortedError: DEFINITION_CHANGED, where somebody else changed it since it
        was planned; nothing is written then (case API-02).
    :raises FailedPreconditionError: DEFINITION_REFUSED by libvirt, with the old one in
        force (case XML-05); TARGET_NOT_REACHED where libvirt stored other values.
    """
    previous, xml = context.planned_from.config_xml, step.xml
    assert previous is not None, "only a persistent domain gets this step"
    assert xml is not None, "a plan without blockers holds the definition"
    await tools.journal.keep_definition(context.operation_id, context.uuid, previous, tools.clock.now_s())
    await tools.hypervisor.define(context.uuid, context.planned_from.etag, xml)
    context.changed = True
    context.previous_xml = context.previous_xml or previous
    context.domain = context.planned_from = await read_changed(tools, context.uuid)
    stored_xml, stored = context.domain.config_xml, context.domain.config
    sent = parse_definition(xml)
    if stored is None or stored_xml is None:
        raise FailedPreconditionError(
            Reason.TRANSIENT_DOMAIN,
            "the stored definition vanished right after the define; somebody undefined the domain",
        )
    for name in _NAMED:
        wanted, found = getattr(sent, name), getattr(stored, name)
        if wanted != found:
            raise FailedPreconditionError(
                Reason.TARGET_NOT_REACHED,
                f"libvirt stored {name} {found} where {wanted} was sent; the definition before is kept in the journal; "
                "look at the domain's XML",
                {"value": name, "asked": wanted, "found": found},
            )
    for lost in lost_by_define(xml, stored_xml):
        context.notes.append(
            Note(Reason.REMOVED_BY_LIBVIRT, f"libvirt itself changed the definition: {lost}")
        )
    return Evidence(
        f"stored: maximum vCPUs {stored.maximum_vcpus}, current {stored.current_vcpus}, maximum memory "
        f"{format_kib(stored.memory_kib)}, current {format_kib(stored.current_memory_kib)}, "
        f"topology {stored.topology or 'none'}"
    )
