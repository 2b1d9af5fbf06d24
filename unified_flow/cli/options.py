"""Options that several commands share, with the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import click
import typer

from interventions.cli.options import AsJson, AsJsonl, Grant, Home, Yes
from unified_flow.cli.completing import collection_names, model_names, paths, tool_names

__all__ = [
    "AllowTools",
    "ApiKeyEnv",
    "ApiKeyFile",
    "AsJson",
    "AsJsonl",
    "BaseUrl",
    "CollectionName",
    "Docs",
    "FlowOptions",
    "Grant",
    "Home",
    "ModelName",
    "ModelOptions",
    "ToolModules",
    "ToolOptions",
    "TurnOptions",
    "Yes",
]


Docs = Annotated[
    list[str] | None,
    typer.Option(
        help="File, folder or web page to answer from; may be given again.",
        show_default=False,
        # As text: a path would swallow a slash of an address.
        click_type=click.Path(path_type=str),
        autocompletion=paths,
    ),
]
CollectionName = Annotated[
    str | None,
    typer.Option(
        "--collection",
        metavar="NAME",
        help="A named index of its own [default: the setting `collection`].",
        autocompletion=collection_names,
        show_default=False,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="'embedded', a [models.*] table, or a model of --base-url.",
        autocompletion=model_names,
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1."),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(help="Variable that holds the key [default: OPENAI_API_KEY]."),
]
ToolModules = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="MODULE",
        help="Tools of your own: module, module:function or file.py; may be given again.",
        show_default=False,
    ),
]
AllowTools = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-tool",
        metavar="PATTERN",
        help="A tool that may write or use the network, such as 'time.*'; may be given again.",
        autocompletion=tool_names,
        show_default=False,
    ),
]
ApiKeyFile = Annotated[Path | None, typer.Option(help="File that holds the key.")]


class ModelOptions(TypedDict, total=False):
    """Options that many commands take, as `**chosen: Unpack[ModelOptions]`."""

    model: ModelName
    base_url: BaseUrl
    api_key_env: ApiKeyEnv
    api_key_file: ApiKeyFile


class ToolOptions(TypedDict, total=False):
    docs: Docs
    tool_modules: ToolModules
    allow_tools: AllowTools


class TurnOptions(ToolOptions, ModelOptions, total=False):
    pass


class FlowOptions(TurnOptions, total=False):
    collection: CollectionName
