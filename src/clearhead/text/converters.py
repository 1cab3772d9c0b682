"""Conversion to plain text: from HTML, EPUB, Word, PDF, and a column of a CSV file."""

from __future__ import annotations

import csv
import io
import posixpath
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.text.sources import COLUMN_SUFFIXES, Source, UnreadableFileError, show, suffix_of

LARGEST = 2**28  # bytes of a document, both packed and unpacked; documents are read whole
LARGEST_CELL = 2**24  # characters

PANDOC = frozenset({".doc", ".odt", ".rtf", ".tex", ".ipynb", ".org"})
CALIBRE = frozenset({".mobi", ".azw3", ".azw", ".fb2"})
_OPF = {"opf": "http://www.idpf.org/2007/opf"}
_CONTAINER = {"container": "urn:oasis:names:tc:opendocument:xmlns:container"}


def converter_of(source: Source) -> Callable[[Source], str] | None:
    """The function that converts a file to text, chosen by its suffix; None for plain text."""
    suffix = suffix_of(source.path)
    if suffix in _READERS:
        return _convert
    if suffix in COLUMN_SUFFIXES:
        return _convert_column
    if suffix in PANDOC | CALIBRE:
        name, text = show(source.name), show(str(Path(source.name).with_suffix(".txt")))
        command = f"pandoc -t plain -o {text} {name}" if suffix in PANDOC else f"ebook-convert {name} {text}"
        raise UnreadableFileError(source.name, f"is not plain text: convert it with {command}")
    return None


def _convert_column(source: Source) -> str:
    """The texts in one column of a CSV or TSV file, each on a line of its own."""
    name, content, column = show(source.name), _read(source), source.column
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFileError(source.name, "is not UTF-8: save it as CSV in UTF-8") from None
    csv.field_size_limit(LARGEST_CELL)
    separator = "\t" if suffix_of(source.path) == ".tsv" else _separator(text)
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        columns = [each for each in rows.fieldnames or [] if each]
        if not columns:
            raise UserError(f"{name} has no columns: expected their names in its first line")
        if column is None or column not in columns:
            named = ", ".join(map(show, columns[:20]))
            missing = "" if column is None else f"no column {show(column)}, but "
            example = f"{source.path}:{columns[0]}"
            reason = f"has {missing}{named}: name the column to read, as in {show(example)}"
            raise UnreadableFileError(name, reason) if column is None else UserError(f"{name} {reason}")
        cells = [row[column] for row in rows if row[column]]
    except csv.Error as error:
        raise UserError(f"{name} cannot be read as CSV: {error}") from None
    return "\n".join(cells) + "\n" if cells else ""


def _separator(text: str) -> str:
    """The separator that occurs most often in the header."""
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _convert(source: Source) -> str:
    suffix = suffix_of(source.path)
    require("documents", f"reading {suffix} files")
    content = _read(source)
    kind, read = _READERS[suffix]
    try:
        text = read(content)
    except UserError as error:
        raise UnreadableFileError(source.name, str(error)) from None
    except ImportError as error:  # part of the extra was removed
        raise UserError(
            f"reading {suffix} files needs {error.name}, which is not installed: pip install 'clearhead[documents]'"
        ) from None
    except Exception:  # the libraries raise errors of many kinds for damaged files
        raise UnreadableFileError(
            source.name,
            f"cannot be read as {kind}: it is damaged, or not the kind of file that its name suggests",
        ) from None
    if not text.strip():
        scanned = (
            "; if its pages are images, convert them to text first, with ocrmypdf" if kind == "PDF" else ""
        )
        raise UnreadableFileError(source.name, f"contains no text{scanned}")
    return text


def _read(source: Source) -> bytes:
    content = bytearray()
    for block in source.blocks():
        content += block
        if len(content) > LARGEST:
            raise UnreadableFileError(
                source.name, f"is larger than {LARGEST >> 20} MB: split it, or convert it to plain text"
            )
    return bytes(content)


def _read_html(content: bytes) -> str:
    from inscriptis import get_text
    from lxml import html

    if not content.strip():
        return ""
    # The parser takes the encoding that the page declares; most pages without one are UTF-8.
    encoding = None if b"charset" in content[:2048].lower() or b"encoding" in content[:200] else "utf-8"
    page = html.document_fromstring(content, parser=html.HTMLParser(encoding=encoding))
    return get_text(html.tostring(page, encoding="unicode"))


def _read_epub(content: bytes) -> str:
    """The chapters in reading order."""
    from lxml import etree

    archive = _open_archive(content)
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    container = etree.fromstring(archive.read("META-INF/container.xml"), parser)
    package = container.find(".//container:rootfile", _CONTAINER).get("full-path")
    contents = etree.fromstring(archive.read(package), parser)
    files = {each.get("id"): each.get("href") for each in contents.findall(".//opf:item", _OPF)}
    folder = posixpath.dirname(package)
    chapters = []
    for item in contents.findall(".//opf:itemref", _OPF):
        path = posixpath.normpath(posixpath.join(folder, unquote(files[item.get("idref")])))
        chapters.append(_read_html(archive.read(path)))
    return "\n".join(chapter for chapter in chapters if chapter.strip())


def _read_docx(content: bytes) -> str:
    from docx import Document as Word
    from docx.table import Table

    _open_archive(content)
    lines: list[str] = []
    for part in Word(io.BytesIO(content)).iter_inner_content():
        if isinstance(part, Table):
            lines += ("\t".join(cell.text for cell in row.cells) for row in part.rows)
        else:
            lines.append(part.text)
    return "\n".join(lines) + "\n"


def _read_pdf(content: bytes) -> str:
    from pypdf import PdfReader

    document = PdfReader(io.BytesIO(content))
    if document.is_encrypted and not document.decrypt(""):
        raise UserError("is encrypted: save a copy without a password")
    return "\n".join(page.extract_text() for page in document.pages) + "\n"


def _open_archive(content: bytes) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(content))
    if sum(each.file_size for each in archive.infolist()) > LARGEST:
        raise UserError(f"unpacks to more than {LARGEST >> 20} MB: convert it to plain text")
    return archive


_READERS: dict[str, tuple[str, Callable[[bytes], str]]] = {
    ".html": ("HTML", _read_html),
    ".htm": ("HTML", _read_html),
    ".xhtml": ("HTML", _read_html),
    ".epub": ("EPUB", _read_epub),
    ".docx": ("a Word document", _read_docx),
    ".pdf": ("PDF", _read_pdf),
}
