"""`unified-flow doctor`: is everything there that a turn needs, and how to mend what is not."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from interventions.cli.terminal import Code, say
from interventions.errors import QueueError
from interventions.home import LOG_FOLDER, make_private_folder, state_folder
from interventions.plaintext import for_home
from interventions.retry.contract import lost_turns
from interventions.storage.disk import obstacle
from unified_flow.cli import options
from unified_flow.cli.documents import NAME_DOCUMENTS
from unified_flow.cli.recovery import ALL as RECOVER_ALL
from unified_flow.cli.recovery import described
from unified_flow.cli.terminal import counted, held, say_object
from unified_flow.errors import ConfigError, InputError, RecipeError, UnifiedFlowError
from unified_flow.phases import NAMES

if TYPE_CHECKING:
    from unified_flow.engine.services import Services


def doctor(
    as_json: options.AsJson = False,
    home: options.Home = None,
    **chosen: Unpack[options.FlowOptions],
) -> None:
    """Check that everything works, and say what to do.

    \b
    unified-flow doctor
    unified-flow doctor --model qwen2.5:1.5b --base-url http://127.0.0.1:11434/v1

    Exit code 0 if all is well, 4 if the queue is in trouble, else 1.
    """
    import asyncio

    from unified_flow.wiring import wire

    async def check() -> list[Finding]:
        try:
            services = wire(home, **chosen)
        except (ConfigError, InputError, QueueError) as exc:
            return [Finding("settings", False, str(exc), exc.hint)]
        try:
            return await check_all(services)
        finally:
            await services.aclose()

    findings = asyncio.run(check())
    show_findings(findings, as_json, home)
    wrong = [finding.name for finding in findings if not finding.ok]
    if wrong:
        raise typer.Exit(Code.QUEUE if "queue" in wrong else Code.FAILED)


@dataclass(frozen=True)
class Finding:
    """`hint` says how to mend what is not `ok`."""

    name: str
    ok: bool
    message: str
    hint: str | None = None


def show_findings(findings: list[Finding], as_json: bool, home: Path | None) -> None:
    if as_json:
        well = all(finding.ok for finding in findings)
        say_object({"ok": well, "checks": [asdict(f) for f in findings]})
        return
    for finding in findings:
        say(f"{'✓' if finding.ok else '✗'} {finding.name}: {finding.message}")
        if finding.hint and not finding.ok:
            say(f"    {for_home(finding.hint, home)}")


async def check_all(services: Services) -> list[Finding]:
    settings = f"policy {services.policy.name}, digest {services.config_digest}"
    return [
        Finding("settings", True, settings),
        *_folders(services.home),
        *_recipes(services),
        checked("documents", lambda: _documents(services)),
        checked("tools", lambda: _tools(services)),
        *[await _server(services, name) for name in services.toolbox.servers],
        checked("sessions", lambda: _sessions(services)),
        checked("memory", lambda: _memories(services)),
        *await _dead_turns(services),
        checked("queue", lambda: _queue(services)),
        *_lost_turns(services),
        checked("guardrails", lambda: _rules(services)),
        *[finding async for finding in _moderation(services)],
        *[await _model(services, name) for name in _models(services)],
    ]


def checked(name: str, check: Callable[[], str]) -> Finding:
    """What `check` returns is well; what it raises is not."""
    try:
        return Finding(name, True, check())
    except (UnifiedFlowError, QueueError) as exc:
        return Finding(name, False, str(exc), exc.hint)


def _folders(home: Path) -> Iterator[Finding]:
    for folder in (state_folder(home), home / LOG_FOLDER):
        try:
            make_private_folder(folder)
        except OSError as exc:
            hint = f"make it writable, or name another home with --home (now {home})"
            yield Finding(folder.name, False, f"{folder}: {exc.strerror}", hint)
            continue
        if (found := obstacle(folder)) is not None:
            yield Finding(folder.name, False, str(found), found.hint)
        else:
            yield Finding(folder.name, True, f"{folder} can be written, and holds {_held(folder)}")


def _held(folder: Path) -> str:
    sizes = []
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # removed meanwhile
                sizes.append(os.lstat(f"{place}/{name}").st_size)
    return f"{sum(sizes) / 1024 / 1024:.1f} MB in {counted(len(sizes), 'file')}"


def _recipes(services: Services) -> Iterator[Finding]:
    own, broken = 0, False
    for phase in NAMES:
        try:
            own += services.recipe(phase).path.parent == services.recipes
        except RecipeError as exc:
            broken = True
            yield Finding("recipe", False, str(exc), exc.hint)
    if not broken:
        origin = f"{own} of them from {services.recipes}" if own else "as packaged"
        yield Finding("recipes", True, f"read for {len(NAMES)} phases, {origin}")


def _documents(services: Services) -> str:
    """Brings the index up to date on the way, unless it is read-only."""
    from unified_flow.retrieval.documents import AS_IT_IS
    from unified_flow.retrieval.formats.document import NEEDS_EXTRA

    if services.documents is None:
        raise ConfigError("none are named and none are indexed", hint=NAME_DOCUMENTS)
    if services.documents.is_published:
        services.documents.ensure_fresh()
        index = services.documents.index
        index.check()
        return f"{held(*index.counts())}, as published for all workers"
    index = services.documents.index
    if index.is_read_only:
        index.check()
        files, chunks = index.counts()
        return f"{held(files, chunks)}; {index.path} is read-only: {AS_IT_IS}"
    report = services.documents.refresh()
    index.check()
    left_out = f", {len(report.skipped)} left out" if report.skipped else ""
    extra = next((reason for _, reason in report.skipped if NEEDS_EXTRA in reason), None)
    needs = f"; {extra}" if extra else ""
    unread = "".join(f"; {path}: {what}" for path, what in report.unread)
    return f"{held(report.files, report.chunks)}{left_out}{needs}{unread}"


def _tools(services: Services) -> str:
    """Modules and entry points have been imported when the services were made."""
    tools = list(services.toolbox)
    waiting = [t.name for t in tools if services.gate.decide(t).verdict != "allowed"]
    own = sorted({tool.source for tool in tools if tool.source != "built in"})
    where = f", {len(own)} of your own sources: {', '.join(own)}" if own else ""
    gated = f"; nobody has allowed {', '.join(waiting)}" if waiting else ""
    return f"{len(tools)}{where}{gated}"


async def _server(services: Services, name: str) -> Finding:
    before = {tool.name for tool in services.toolbox}
    try:
        await services.toolbox.open(f"{name}.")
    except UnifiedFlowError as exc:
        return Finding(f"mcp {name}", False, str(exc), exc.hint)
    found = sorted({tool.name for tool in services.toolbox} - before)
    doubled = [left for left in services.toolbox.ambiguous if left.startswith(f"{name}.")]
    without = f"; not used, for there are several: {', '.join(doubled)}" if doubled else ""
    shown = ", ".join(found) or "none"
    return Finding(f"mcp {name}", not doubled, f"{len(found)} tools: {shown}{without}")


def _sessions(services: Services) -> str:
    services.sessions.recent("", before=0, limit=1)
    return f"{services.sessions.place} can be read"


def _memories(services: Services) -> str:
    """Count every user's memories: a file that cannot be read fails each of its user's turns."""
    users, records = services.memory.counted()
    return f"{records} memories of {users} users"


def _queue(services: Services) -> str:
    health = services.queue.health()
    return f"{health['unresolved']} open, {health['queue_health']}"


async def _dead_turns(services: Services) -> list[Finding]:
    """Turns whose process died, which are reported now; nothing where all is well."""
    from unified_flow.engine.dead_turns import report_dead_turns
    from unified_flow.turns.archive import TurnArchive

    turns = services.turns
    gone = [row["turn_id"] for row in await TurnArchive(turns).cut_off()]
    dead = await report_dead_turns(turns, services.queue, services.query_log, among=gone)
    return [Finding("cut off", False, described(dead), RECOVER_ALL)] if dead else []


def _lost_turns(services: Services) -> Iterator[Finding]:
    """Interventions whose turns are gone; nothing where all is well."""
    try:
        found = lost_turns(services.queue.entries(), services.home)
    except QueueError:
        return  # a finding of the queue
    if found:
        yield Finding("turns", False, *found)


def _rules(services: Services) -> str:
    counted = services.guardrails.count()
    said = "nobody has rules" if counted is None else f"{counted[0]} rules of {counted[1]} users"
    return f"{said}; shadow: nothing is blocked" if services.settings.guardrails.shadow else said


async def _moderation(services: Services) -> AsyncIterator[Finding]:
    """Try the moderation, if there is any or the environment expects it."""
    guardrails, own = services.guardrails, services.settings.guardrails
    asked_for = os.environ.get("OPENAI_MODERATION_ENABLED", "").strip()
    if guardrails.moderator is not None:
        failed = await guardrails.try_moderation()
        hint = f"{own.moderation_failure}: mend it, or set OPENAI_MODERATION_ENABLED=false"
        well = f"{own.moderation_url} answers"
        yield Finding("moderation", failed is None, failed or well, hint if failed else None)
    elif asked_for and own.moderation_url is None:
        hint = "name the endpoint in guardrails.moderation_url; without one nothing is moderated"
        said = f"OPENAI_MODERATION_ENABLED is {asked_for}, and no endpoint is named"
        yield Finding("moderation", asked_for.lower() in ("0", "false", "no", "off"), said, hint)


def _models(services: Services) -> list[str]:
    """The models that the phases would call."""
    found = set()
    for phase in NAMES:
        with suppress(RecipeError):  # a finding of the recipes
            found.add(services.models.name_of(services.recipe(phase).head))
    return sorted(name for name in found if name is not None)


async def _model(services: Services, name: str) -> Finding:
    from unified_flow.config.settings import EMBEDDED
    from unified_flow.models.local_model import LocalModel
    from unified_flow.models.openai.model import OpenAIModel
    from unified_flow.models.openai.probe import probe, probe_local, unwrapped
    from unified_flow.servers.keys import exposure

    if name == EMBEDDED:
        return Finding("model embedded", True, "rules and quotes; needs no server")
    title = f"model {name}"
    try:
        model = unwrapped(services.models.named(name))
    except ConfigError as exc:
        return Finding(title, False, str(exc), exc.hint)
    if isinstance(model, LocalModel):
        found = await probe_local(model)
        return Finding(title, found.ok, found.message, found.hint)
    assert isinstance(model, OpenAIModel)
    key_file = services.settings.endpoint(name).api_key_file
    if key_file is not None and (exposed := exposure(key_file)):
        return Finding(title, False, f"the key file {key_file} is not private", exposed)
    found = await probe(model)
    return Finding(title, found.ok, found.message, found.hint)
