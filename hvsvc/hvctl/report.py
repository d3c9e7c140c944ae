"""Reports a failure: for people on stderr, for programs as `error` on stdout."""

from __future__ import annotations

import sys

import click

from hvsvc.hvctl import hints
from hvsvc.hvctl.channel import connection_words
from hvsvc.hvctl.failure import Failure
from hvsvc.hvctl.output import print_data
from hvsvc.hvctl.settings import Settings
from hvsvc.hvctl.terminal import folded, safe


def report(settings: Settings, failure: Failure, *, next_step: str = "") -> None:
    """Report a call that failed; `next_step` replaces the usual hint."""
    if settings.output_format in {"json", "yaml"}:
        print_data(settings.output_format, {"error": failure.document})
    explain(settings, failure, next_step=next_step)


def explain(settings: Settings, failure: Failure, *, next_step: str = "") -> None:
    """Say on stderr what went wrong and what to do next."""
    hint = hints.hint_for(
        failure.code,
        failure.reason,
        settings.target,
        domain=_domain_asked(),
        connection=connection_words(settings),
        located=settings.located,
        pending=failure.metadata.get("pending") == "true",
    )
    for line in _lines(failure, next_step or hint):
        click.echo(folded(line, sys.stderr), err=True)


def _domain_asked() -> str:
    """The DOMAIN of the command line; empty where the command has none."""
    ctx = click.get_current_context(silent=True)
    asked = ctx.params.get("domain") if ctx else None
    return asked if isinstance(asked, str) else ""


def _lines(failure: Failure, hint: str) -> list[str]:
    lines = [f"hvctl: {safe(failure.message)}"]
    lines.append(
        f"  reason: {safe(failure.reason)} ({failure.code})" if failure.reason else f"  code: {failure.code}"
    )
    for item in failure.field_violations:
        text = item.get("description", "")
        # The message of the error is often that of its only field.
        lines.append(
            f"  field: {safe(item.get('field', ''))}{'' if text == failure.message else f': {safe(text)}'}"
        )
    texts = [item.get("description", "") for item in failure.violations]
    lines += [f"  also: {safe(text)}" for text in texts if text != failure.message]
    candidates = filter(None, map(str.strip, failure.metadata.get("candidates", "").split(",")))
    lines += [f"  candidate: {safe(name)}" for name in candidates if name not in failure.message]
    if failure.retry_delay:
        lines.append(f"  retry after: {safe(failure.retry_delay)}")
    if hint:
        lines.append(f"  next: {safe(hint)}")
    return lines
