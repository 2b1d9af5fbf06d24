"""Mail (.eml) and saved web pages (.mhtml), decoded, with attachments that are text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import MIMEPart

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import html
from unified_flow.retrieval.formats.encoding import decode

_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def mail_sections(data: bytes) -> Iterator[Section]:
    yield from _parts(message_from_bytes(data, policy=policy.default), ())


def _parts(message: MIMEPart, above: tuple[str, ...]) -> Iterator[Section]:
    headers = {name: str(message[name]) for name in _HEADERS if message[name]}
    trail = (*above, *([headers["Subject"]] if "Subject" in headers else []))
    lines = [f"{name}: {said}" for name, said in headers.items()]
    yield Section(trail, lines)
    body = message.get_body(("plain", "html"))
    if body is not None:
        yield from _text(body, trail)
    # What a page shows besides its text is no attachment.
    is_page = message.get_content_type() == "multipart/related"
    for each in message.iter_attachments() if message.is_multipart() and not is_page else ():
        name = each.get_filename() or each.get_content_type()
        if each.get_content_type() == "message/rfc822":
            yield from _parts(each.get_content(), trail)
        elif each.get_content_maintype() == "text":
            yield from _text(each, (*trail, name))
        else:
            yield Section(trail, [], unread=f"attachment {name}")


def _text(part: MIMEPart, trail: tuple[str, ...]) -> Iterator[Section]:
    try:
        text: str = part.get_content()
    except LookupError:  # of its character set
        text = decode(bytes(part.get_payload(decode=True))).text
    text = text.replace("\r\n", "\n")
    if part.get_content_subtype() != "html":
        yield Section(trail, text.split("\n"))
        return
    for each in html.html_sections(text.encode("utf-8", "replace")):
        yield replace(each, trail=(*trail, *each.trail))
