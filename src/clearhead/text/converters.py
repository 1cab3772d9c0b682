"""Conversion to plain text: from HTML, EPUB, Word, PDF, and a column of a CSV file."""

from __future__ import annotations

import csv
import io
import logging
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.files import list_archive
from clearhead.text.sources import (
    COLUMN_SUFFIXES,
    MOST_EXPANSION,
    UNCHECKED,
    Source,
    UnreadableFileError,
    show,
    suffix_of,
)

LARGEST = 2**28  # bytes of a document, both packed and unpacked; documents are read whole
LARGEST_CELL = 2**24  # characters

DEEPEST_LIST = 10  # nesting levels that are indented
_KEPT_STYLE = re.compile(r"(?:display|white-space)\s*:\s*[a-z-]+")

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


def read_table(source: Source) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The columns of a CSV or TSV file, and its rows, each with the number of its last line in the file.

    A row lacks the columns after its last cell.
    """
    name, content = show(source.name), _read(source)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFileError(source.name, "is not UTF-8: save it as CSV in UTF-8") from None
    csv.field_size_limit(LARGEST_CELL)
    separator = "\t" if suffix_of(source.path) == ".tsv" else _separator(text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        header = next((row for row in rows if row), [])
    except csv.Error as error:
        raise UserError(f"{name} cannot be read as CSV: {error}") from None
    columns = [each for each in header if each]
    if not columns:
        raise UserError(f"{name} has no columns: expected their names in its first line")

    def read() -> Iterator[tuple[int, dict[str, str]]]:
        try:
            for row in rows:
                if row:  # the line is not empty
                    cells = zip(header, row, strict=False)
                    yield rows.line_num, {column: cell for column, cell in cells if column}
        except csv.Error as error:
            raise UserError(f"{name} cannot be read as CSV: {error}") from None

    return columns, read()


def _convert_column(source: Source) -> str:
    """The texts in one column of a CSV or TSV file, one per line."""
    name, column = show(source.name), source.column
    columns, rows = read_table(source)
    if column is None or column not in columns:
        named = ", ".join(map(show, columns[:20]))
        missing = "" if column is None else f"no column {show(column)}, but "
        example = f"{source.path}:{columns[0]}"
        reason = f"has {missing}{named}: name the column to read, as in {show(example)}"
        raise UnreadableFileError(name, reason) if column is None else UserError(f"{name} {reason}")
    cells = [row[column] for _, row in rows if row.get(column)]
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
    _simplify(page)
    return get_text(html.tostring(page, encoding="unicode"))


def _simplify(page: Any) -> None:
    """Remove what would be laid out with spaces, which can take many times the page's size: columns of equal width,
    margins, and deep lists. A row of a table becomes a line, with spaces between its cells.
    """
    for cell in page.iter("td", "th"):
        cell.tag, cell.tail = "span", " "
    for part in page.iter("table", "tr"):
        part.tag = "article"  # a block that is not indented
    for each in page.xpath("//*[@style]"):
        each.set("style", "; ".join(_KEPT_STYLE.findall(each.get("style").lower())))
    for inner in page.xpath(
        f"//*[self::ul or self::ol][count(ancestor::ul | ancestor::ol) >= {DEEPEST_LIST}]"
    ):
        inner.tag = "article"


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
    names = (unquote(files[item.get("idref")]) for item in contents.findall(".//opf:itemref", _OPF))
    paths = dict.fromkeys(posixpath.normpath(posixpath.join(folder, name)) for name in names)  # each once
    chapters = [_read_html(archive.read(path)) for path in paths]
    return "\n".join(chapter for chapter in chapters if chapter.strip())


def _read_docx(content: bytes) -> str:
    from docx import Document as Word
    from docx.table import Table, _Cell

    _open_archive(content)
    lines: list[str] = []
    for part in Word(io.BytesIO(content)).iter_inner_content():
        if isinstance(part, Table):
            # `row.cells` would repeat a cell for each column and row that it spans, of which there may be any number.
            rows = ([_Cell(cell, part).text for cell in row._tr.tc_lst] for row in part.rows)
            lines += map("\t".join, rows)
        else:
            lines.append(part.text)
    return "\n".join(lines) + "\n"


def _read_pdf(content: bytes) -> str:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings would print what the file contains
    document = PdfReader(io.BytesIO(content))
    if document.is_encrypted and not document.decrypt(""):
        raise UserError("is encrypted: save a copy without a password")
    return "\n".join(page.extract_text() for page in document.pages) + "\n"


def _open_archive(content: bytes) -> zipfile.ZipFile:
    list_archive(io.BytesIO(content))
    archive = zipfile.ZipFile(io.BytesIO(content))
    most = min(LARGEST, max(UNCHECKED, MOST_EXPANSION * len(content)))
    if sum(each.file_size for each in archive.infolist()) > most:
        raise UserError(f"unpacks to more than {most >> 20} MB: convert it to plain text")
    return archive


_READERS: dict[str, tuple[str, Callable[[bytes], str]]] = {
    ".html": ("HTML", _read_html),
    ".htm": ("HTML", _read_html),
    ".xhtml": ("HTML", _read_html),
    ".epub": ("EPUB", _read_epub),
    ".docx": ("a Word document", _read_docx),
    ".pdf": ("PDF", _read_pdf),
}
