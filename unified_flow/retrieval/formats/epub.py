"""EPUB: the pages of the book in the order of its spine, read as HTML; needs no library."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree import ElementTree

from unified_flow.lib.sandbox import Part, UnusableError
from unified_flow.retrieval.formats import html
from unified_flow.retrieval.formats.office import whole_file

_CONTAINER = "META-INF/container.xml"
_PROTECTED = "META-INF/rights.xml"


def epub_parts(data: bytes) -> Iterator[Part]:
    with whole_file(data, "book") as file, zipfile.ZipFile(file) as archive:
        if _PROTECTED in archive.namelist():
            raise UnusableError("encrypted: its pages are protected")
        for name in _spine(archive):
            yield from html.html_parts(archive.read(name))


def _spine(archive: zipfile.ZipFile) -> list[str]:
    root = ElementTree.fromstring(archive.read(_CONTAINER)).find(".//{*}rootfile")
    package = root.get("full-path", "") if root is not None else ""
    tree = ElementTree.fromstring(archive.read(package))
    pages = {
        item.get("id"): item.get("href", "")
        for item in tree.iterfind(".//{*}manifest/{*}item")
        if "html" in item.get("media-type", "")
    }
    folder = posixpath.dirname(package)
    order = [item.get("idref") for item in tree.iterfind(".//{*}spine/{*}itemref")]
    return [
        posixpath.normpath(posixpath.join(folder, unquote(pages[each])))
        for each in order
        if each in pages
    ]
