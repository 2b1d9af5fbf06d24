"""`unified-flow collections`: the named indexes of this project."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from interventions.cli.terminal import Code, note, say
from unified_flow.cli import options
from unified_flow.cli.completing import collection_names


def list_collections(as_json: options.AsJson = False, home: options.Home = None) -> None:
    """Every collection, with its files and where they come from.

    \b
    unified-flow collections list
    unified-flow index manuals/ --collection manuals     makes one
    """
    from interventions.home import find_home
    from unified_flow.errors import RetrievalError
    from unified_flow.retrieval.collection import collection_at, collection_names
    from unified_flow.retrieval.documents import index_folder

    folder = index_folder(find_home(home))
    found = []
    for name in collection_names(folder):
        try:
            found.append(collection_at(folder, name))
        except RetrievalError as exc:
            note(f"{name}: {exc}")
    if as_json:
        rows = [
            {
                "name": each.name,
                "files": each.files,
                "chunks": each.chunks,
                "roots": [str(root) for root in each.roots],
                "size_bytes": each.size_bytes,
            }
            for each in found
        ]
        say(json.dumps({"collections": rows}, ensure_ascii=False))
    elif not found:
        say("no collections yet: unified-flow index FOLDER")
    else:
        width = max(len("COLLECTION"), *(len(each.name) for each in found))
        say(f"{'COLLECTION':{width}}  FILES  CHUNKS       MB  FROM")
        for each in found:
            roots = ", ".join(str(root) for root in each.roots)
            size = each.size_bytes / 1024 / 1024
            say(f"{each.name:{width}}  {each.files:5}  {each.chunks:6}  {size:7.1f}  {roots}")


def delete_collection(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The collection's name.",
            autocompletion=collection_names,
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    home: options.Home = None,
) -> None:
    """Delete a collection's index. The documents themselves stay.

    \b
    unified-flow collections delete manuals
    """
    from interventions.home import find_home
    from unified_flow.retrieval.collection import (
        collection_names,
        delete_collection,
        unknown_collection,
    )
    from unified_flow.retrieval.documents import index_folder

    folder = index_folder(find_home(home))
    if name not in collection_names(folder):
        raise unknown_collection(folder, name)
    if not yes and not typer.confirm(f"delete the index of {name}?", err=True):
        raise typer.Exit(Code.FAILED)
    delete_collection(folder, name)
    say(f"deleted {name}; the documents are untouched")
