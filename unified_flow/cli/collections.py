"""`unified-flow collections`: the named indexes of this project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from interventions.cli.terminal import confirm, note, say
from interventions.home import find_home
from interventions.times import short_duration, utc_now
from unified_flow.cli import options
from unified_flow.cli.documents import note_unasked
from unified_flow.cli.terminal import counted, held, say_object, say_result

if TYPE_CHECKING:
    from unified_flow.retrieval.collection import Statistics

REASONS = 10  # for which files were skipped


def list_collections(as_json: options.AsJson = False, home: options.Home = None) -> None:
    """Every collection, with its files and where they come from.

    \b
    unified-flow collections list
    unified-flow index manuals/ --collection manuals     makes one
    """
    from unified_flow.errors import RetrievalError
    from unified_flow.retrieval.collection import collection_at, collection_names
    from unified_flow.retrieval.documents import index_folder

    folder = index_folder(find_home(home))
    names, found = collection_names(folder), []
    for name in names:
        try:
            found.append(collection_at(folder, name))
        except RetrievalError as exc:
            note(f"{name}: {exc}")
    if as_json:
        rows = [asdict(each) | {"roots": [str(root) for root in each.roots]} for each in found]
        say_object({"collections": rows})
    elif not names:
        say("no collections yet: unified-flow index FOLDER")
    elif found:
        width = max(len("COLLECTION"), *(len(each.name) for each in found))
        say(f"{'COLLECTION':{width}}  FILES  CHUNKS       MB  FROM")
        for each in found:
            roots = ", ".join(str(root) for root in each.roots)
            size = each.size_bytes / 1024 / 1024
            say(f"{each.name:{width}}  {each.files:5}  {each.chunks:6}  {size:7.1f}  {roots}")


def show_collection(
    name: Annotated[
        str | None, Argument(help="Its name [default: the setting `collection`].")
    ] = None,
    docs: options.Docs = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """What an index holds, and what was skipped and why.

    \b
    unified-flow collections show
    unified-flow collections show manuals --json
    """
    from unified_flow.retrieval.documents import open_documents

    documents = open_documents(home, docs, name)
    try:
        found = documents.statistics()
    finally:
        documents.close()
    if as_json:
        say_object(_of_statistics(found))
    else:
        _show(found)
    if not docs:
        note_unasked(home, name)


def delete_collection(
    name: Annotated[str, Argument(help="Its name.")],
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Delete a collection's index, also for workers. The documents themselves stay.

    \b
    unified-flow collections delete manuals
    """
    from unified_flow.retrieval.collection import (
        collection_names,
        delete_collection,
        unknown_collection,
    )
    from unified_flow.retrieval.documents import index_folder
    from unified_flow.stores import shared_database

    folder, database = index_folder(find_home(home)), shared_database(find_home(home))
    if database is not None:
        from unified_flow.shared.index_snapshot import is_published, withdraw
    is_here = name in collection_names(folder)
    if not is_here and (database is None or not is_published(database, name)):
        raise unknown_collection(folder, name)
    if not yes:
        confirm(f"delete the index of {name}")
    if database is not None:  # first: a database that is away leaves the command to be repeated
        withdraw(database, name)
    if is_here:
        delete_collection(folder, name)
    say_result(as_json, {"deleted": name}, f"deleted {name}; the documents are untouched")


def _of_statistics(found: Statistics) -> dict[str, Any]:
    return asdict(found) | {
        "newest": found.newest and f"{found.newest:%Y-%m-%dT%H:%M:%SZ}",
        "largest": [
            {"path": path, "characters": size, "chunks": chunks}
            for path, size, chunks in found.largest
        ],
    }


def _show(found: Statistics) -> None:
    say(f"collection {found.collection}: {held(found.files, found.chunks)}")
    say(f"  on disk    {found.size_bytes / 1024 / 1024:.1f} MB")
    if found.newest is not None:
        say(f"  last read  {short_duration(utc_now() - found.newest)} ago")
    say(f"  languages  {_counted(found.languages)}")
    say(f"  formats    {_counted(found.formats)}")
    skipped = list(found.skipped.items())[:REASONS]
    listed: dict[str, Iterable[object]] = {
        "largest": [
            f"{path} ({size:,} characters, {counted(n, 'chunk')})"
            for path, size, n in found.largest
        ],
        "skipped": [f"{count}: {reason}" for reason, count in skipped],
        "unread": found.unread,
        "from": found.roots,
    }
    for title, lines in listed.items():
        for number, line in enumerate(lines):
            say(f"  {'' if number else title:<9}  {line}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
