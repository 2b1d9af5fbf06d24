"""`unified-flow doctor`: is everything there that a turn needs, and how to mend what is not."""

from __future__ import annotations

import json
from typing import Unpack

import typer

from interventions.cli.terminal import Code, say
from interventions.plaintext import clean
from unified_flow.cli import options


def doctor(
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Check settings, recipes, documents, the model's endpoint and the state folders.

    \b
    unified-flow doctor
    unified-flow doctor --model qwen2.5:1.5b --base-url http://127.0.0.1:11434/v1

    Exit code 0 if all is well, else 1.
    """
    import asyncio
    from dataclasses import asdict

    from unified_flow.cli.checkup import Finding, check_all
    from unified_flow.errors import ConfigError, InputError
    from unified_flow.wiring import wire

    async def check() -> list[Finding]:
        try:
            services = wire(
                home,
                **chosen,
            )
        except (ConfigError, InputError) as exc:
            return [Finding("settings", False, str(exc), exc.hint)]
        try:
            return await check_all(services)
        finally:
            await services.aclose()

    findings = asyncio.run(check())
    if as_json:
        well = all(finding.ok for finding in findings)
        say(json.dumps({"ok": well, "checks": [asdict(f) for f in findings]}))
    else:
        for finding in findings:
            say(clean(f"{'✓' if finding.ok else '✗'} {finding.name}: {finding.message}"))
            if finding.hint and not finding.ok:
                say(clean(f"    {finding.hint}"))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(Code.FAILED)
