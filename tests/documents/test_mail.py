"""E-mails and saved web pages are decoded; their attachments are read by the other readers."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from core.documents.readers import detect_kind, read_file
from core.runtime.errors import InputError
from core.schema.records import Source
from tests.documents.builders import blocks_of, check_offsets, pdf, request, word

FEE = "The annual fee is 240 euros."
ALTERNATIVES = b"""From: A <a@example.org>
To: b@example.org
Subject: =?utf-8?B?RsOkaHJl?=
Date: Mon, 2 Mar 2026 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="xx"

--xx
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

VGhlIGFubnVhbCBmZWUgaXMgMjQwIGV1cm9zLg==
--xx
Content-Type: text/html; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

<p>The annual fee is =
240 euros. Caf=E9.</p>
--xx--
"""
WEB_ARCHIVE = b"""From: <Saved by Blink>
Snapshot-Content-Location: https://example.org/
Subject: Fees
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="yy"

--yy
Content-Type: text/css

p { color: red }
--yy
Content-Type: text/html
Content-Transfer-Encoding: quoted-printable

<html><body><p>The annual fee is 240 eu=
ros.</p></body></html>
--yy--
"""


def read(name: str, data: bytes) -> Source:
    source = read_file(request(name, data, detect_kind(name, data)))
    check_offsets(source)
    return source


def mail(text: str = FEE, **attachments: bytes) -> bytes:
    """A message; in the names of attachments `_` stands for a dot."""
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "Fees"
    message.set_content(text)
    for name, data in attachments.items():
        message.add_attachment(
            data, maintype="application", subtype="octet-stream", filename=name.replace("_", ".")
        )
    return message.as_bytes()


def test_a_mail_is_read_with_its_subject_sender_and_date() -> None:
    assert blocks_of(read("a.eml", ALTERNATIVES)) == [
        ("heading", "Fähre"),
        ("paragraph", "From: A <a@example.org>"),
        ("paragraph", "To: b@example.org"),
        ("paragraph", "Date: Mon, 02 Mar 2026 10:00:00 +0000"),
        ("paragraph", "The annual fee is 240 euros. Café."),
    ]


@pytest.mark.parametrize("name", ["page.mhtml", "page.mht"])
def test_a_saved_web_page_is_read(name: str) -> None:
    assert blocks_of(read(name, WEB_ARCHIVE)) == [("paragraph", FEE)]


@pytest.mark.parametrize(
    ("charset", "encoded"),
    [
        ("utf-8", "Café".encode()),
        ("latin-1", b"Caf\xe9"),
        ("no-such", b"Caf\xe9"),
        ("", b"Caf\xe9"),
    ],
)
def test_encodings_are_decoded(charset: str, encoded: bytes) -> None:
    kind = f"Content-Type: text/plain; charset={charset}\n" if charset else ""
    source = read("a.eml", f"Subject: x\n{kind}\n".encode() + encoded + b" is open.")
    assert blocks_of(source)[-1] == ("paragraph", "Café is open.")


def test_attachments_are_read_by_their_readers() -> None:
    report = word(lambda document: document.add_paragraph("Dogs are allowed."))
    data = mail(report_docx=report, b_pdf=pdf("Cats are not."), c_csv=b"a,b\n1,2\n")
    source = read("a.eml", data)
    assert source.text.partition(FEE)[2].split("\n\n")[1:] == [
        "\nreport.docx", "Dogs are allowed.", "b.pdf", "Cats are not.", "c.csv", "a 1, b: 2"
    ]  # fmt: skip
    assert ("paragraph", "Cats are not.") in blocks_of(source)
    assert source.pages == ()


def test_a_mail_in_a_mail_is_read() -> None:
    outer, inner = EmailMessage(), EmailMessage()
    inner["Subject"] = "Fees"
    inner.set_content(FEE)
    outer["Subject"] = "Fwd: Fees"
    outer.set_content("See below.")
    outer.add_attachment(inner)
    texts = [text for _, text in blocks_of(read("a.eml", outer.as_bytes()))]
    assert texts == ["Fwd: Fees", "See below.", "attached message.eml", "Fees", FEE]


def multipart(kind: str, *parts: str) -> str:
    boundary = kind[:3]
    body = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{body}--{boundary}--\n'


PLAIN = f"Content-Type: text/plain\n\n{FEE}"
LATER = "Content-Type: text/plain\n\nDogs are free."
PAGE = f"Content-Type: text/html\n\n<p>{FEE}</p>"
INLINE_TABLE = 'Content-Type: text/csv; name="a.csv"\nContent-Disposition: inline\n\na,b\n1,2'
TABLE = 'Content-Type: text/csv\nContent-Disposition: attachment; filename="a.csv"\n\na,b\n1,2'
PICTURE = 'Content-Type: image/png; name="logo.png"\nContent-Disposition: inline\n\nx'
SIGNATURE = (
    'Content-Type: application/pgp-signature; name="signature.asc"\n'
    "Content-Disposition: attachment\n\n-----BEGIN PGP SIGNATURE-----"
)
FORWARDED = f'Content-Type: message/rfc822; name="Fees.pdf"\n\nSubject: Fees\n\n{FEE}'


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        (multipart("mixed", PLAIN, INLINE_TABLE, LATER),
         [FEE, "a.csv", "a 1, b: 2", "Dogs are free."]),
        (multipart("alternative", PLAIN, multipart("mixed", PAGE, TABLE)),
         [FEE, "a.csv", "a 1, b: 2"]),
        (multipart("alternative", multipart("mixed", PLAIN, TABLE), PAGE),
         ["a.csv", "a 1, b: 2", FEE]),
        (multipart("signed", multipart("mixed", PLAIN, TABLE), SIGNATURE),
         [FEE, "a.csv", "a 1, b: 2"]),
        (multipart("mixed", PLAIN, SIGNATURE), [FEE]),
        (multipart("related", PAGE, PICTURE, TABLE), [FEE, "a.csv", "a 1, b: 2"]),
        (multipart("mixed", multipart("related", PAGE, PICTURE), "Content-Type: text/plain\n\n"),
         [FEE]),
        (multipart("mixed", PLAIN, FORWARDED), [FEE, "Fees.pdf", "Fees", FEE]),
        (multipart("mixed", PLAIN, FORWARDED.replace("\n\nS", '\n\nFrom: "\nS')),
         [FEE, "Fees.pdf", "Fees", 'From: "', FEE]),
        (multipart("alternative", INLINE_TABLE), ["a.csv", "a 1, b: 2"]),
        (TABLE, ["a.csv", "a 1, b: 2"]),
        (FORWARDED, ["Fees.pdf", "Fees", FEE]),
        (PLAIN.replace("plain", 'plain; name="body.pdf"'), [FEE]),
    ],
)  # fmt: skip
def test_every_part_is_read_once(parts: str, texts: list[str]) -> None:
    source = read("a.eml", f"Subject: Outer\nMIME-Version: 1.0\n{parts}".encode())
    assert [text for _, text in blocks_of(source)] == ["Outer", *texts]
    assert source.notes == ()


@pytest.mark.parametrize(
    ("part", "note"),
    [
        (multipart("encrypted", PLAIN, TABLE), "A part of this e-mail (multipart/encrypted)"),
        ("Content-Type: message/delivery-status\n\nAction: failed",
         "A part of this e-mail (message/delivery-status)"),
        ("Content-Type: application/zip\nContent-Transfer-Encoding: base64\n\nAAAA",
         "“attachment” is of a type that is not read"),
    ],
)  # fmt: skip
def test_parts_that_are_not_read_are_noted(part: str, note: str) -> None:
    source = read("a.eml", f"Subject: Outer\n{multipart('mixed', LATER, part)}".encode())
    assert [text for _, text in blocks_of(source)] == ["Outer", "Dogs are free."]
    assert [one.startswith(note) for one in source.notes] == [True]


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ('From: "', ['From: "']),
        ("Date: 1 Jan 10000000000 10:00", ["Date: 1 Jan 10000000000 10:00"]),
        ("From: =?utf-8?b?Cg==?= <a@b>", ["From: =?utf-8?b?Cg==?= <a@b>"]),
        ("Content-Type: text/plain; charset=idna", []),
        ("Content-Type: text/plain; charset=punycode", []),
        ('Content-Disposition: attachment; filename*0*="', ["attachment"]),
    ],
)
def test_a_malformed_header_does_not_hide_the_mail(header: str, texts: list[str]) -> None:
    source = read("a.eml", f"Subject: Fees\n{header}\n\nCafé fees.".encode())
    assert [text for _, text in blocks_of(source)] == ["Fees", *texts, "Café fees."]


def test_an_attachment_that_cannot_be_read_is_named() -> None:
    source = read("a.eml", mail(tool_exe=b"MZ\x90\x00\x03\x00", logo_gif=b"GIF89a"))
    assert FEE in source.text
    assert [note.partition(" is ")[0] for note in source.notes] == ["“tool.exe”", "“logo.gif”"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.eml", b"Just a sentence.", "has no header of an e-mail"),
        ("a.mhtml", mail(), "has no web page in it"),
        ("a.eml", bytes(range(256)), "is not UTF-8 text"),
        ("a.eml", pdf("Hello"), "is called .eml but holds a PDF"),
    ],
)
def test_what_is_no_mail_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(name, data)
