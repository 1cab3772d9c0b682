"""Documents that are not plain text: which parts are read, and one-line errors."""

import io
import sys
import zipfile
from pathlib import Path

import pytest

from clearhead.errors import UserError
from clearhead.text import converters
from clearhead.text.corpus import documents, readable
from clearhead.text.sources import find

PAGE = (
    "<html><head><title>T</title><style>p {color: red}</style><script>var hidden = 1;</script></head>"
    "<body><h1>The road</h1><p>A <b>bold</b> chicken, <i>cross</i>ing.</p><p>Café.</p></body></html>"
)


def read(path: Path | str) -> str:
    [document] = documents([path])
    return "".join(document.pieces())


def refused(path: Path | str, match: str) -> None:
    with pytest.raises(UserError, match=match) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def make_epub(path: Path, chapters: dict[str, str], order: list[str]) -> None:
    items = "".join(f'<item id="{name}" href="text/{name}.xhtml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in order)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/book.opf",
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
            f"<spine>{spine}</spine></package>",
        )
        for name, text in chapters.items():
            archive.writestr(
                f"OEBPS/text/{name}.xhtml", f"<html><head/><body><p>{text}</p></body></html>".encode()
            )


def make_pdf(text: str, password: str | None = None) -> bytes:
    from pypdf import PdfReader, PdfWriter

    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    out += f"xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n"
    plain = f"{out}{out.index('xref')}\n%%EOF\n".encode()
    if password is None:
        return plain
    writer, file = PdfWriter(clone_from=PdfReader(io.BytesIO(plain))), io.BytesIO()
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(file)
    return file.getvalue()


def test_html_is_read_without_tags_scripts_and_styles(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    text = read(path)
    assert "A bold chicken, crossing." in text
    assert text.index("The road") < text.index("Café.")
    assert not any(part in text for part in ("<", "hidden", "color"))


def test_html_is_decoded_as_it_declares(tmp_path):
    path = tmp_path / "page.htm"
    path.write_bytes('<meta charset="iso-8859-1"><p>Café.</p>'.encode("latin-1"))
    assert "Café." in read(path)


def test_epub_is_read_in_the_order_of_its_spine(tmp_path):
    path = tmp_path / "novel.epub"
    make_epub(path, {"b": "It was late.", "a": "It was été."}, ["a", "b"])
    assert read(path).split() == ["It", "was", "été.", "It", "was", "late."]


def test_word_document_is_read_with_its_tables(tmp_path):
    import docx

    document = docx.Document()
    document.add_paragraph("First paragraph.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    document.add_paragraph("Last paragraph.")
    document.save(str(tmp_path / "notes.docx"))
    assert read(tmp_path / "notes.docx") == "First paragraph.\na\tb\nLast paragraph.\n"


def test_html_table_is_read_row_by_row(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        "<p>Before</p><table><tr><th>a</th><td>b <i>c</i></td></tr><tr><td>d</td><td>e</td></tr></table>"
    )
    assert read(path).split("\n") == ["Before", "", "a b c", "d e"]


def test_hidden_parts_of_html_are_left_out(tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<p style="color: red; Display:None">hidden</p><p style="color: red">shown</p>')
    assert read(path).split() == ["shown"]


@pytest.mark.parametrize(
    "page",
    [
        f"<table><tr><td>{'a' * 10_000}</td><td>b</td></tr>{'<tr><td>a</td><td>b</td></tr>' * 2000}</table>",
        f"<table><tr><td>{'a<br>' * 1000}</td>{'<td>bbbbbbbbbb</td>' * 1000}</tr></table>",
        '<p style="padding-left: 99999em">a</p>' * 1000,
        f"{'<ul>' * 200}{'<li>a' * 1000}",
    ],
)
def test_layout_does_not_multiply_a_page(tmp_path, page):
    path = tmp_path / "page.html"
    path.write_text(page)
    assert len(read(path)) < 20 * len(page)


def test_chapter_that_a_book_lists_repeatedly_is_read_once(tmp_path):
    path = tmp_path / "novel.epub"
    make_epub(path, {"a": "It was late."}, ["a"] * 5000)
    assert read(path).split() == ["It", "was", "late."]


def test_cell_of_a_word_document_that_spans_many_columns_is_read_once(tmp_path):
    import docx

    document = docx.Document()
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    table.cell(0, 0)._tc.grid_span = 10**5
    document.save(str(tmp_path / "notes.docx"))
    assert read(tmp_path / "notes.docx") == "a\tb\n"


def test_archive_of_very_many_files_is_refused(tmp_path):
    path = tmp_path / "many.epub"
    make_epub(path, {"a": "It was late."}, ["a"])
    with zipfile.ZipFile(path, "a") as archive:
        for i in range(2**21 // 200):
            archive.writestr(zipfile.ZipInfo(f"{i:0200}"), b"")
    refused(path, "it is damaged")


def test_warnings_of_the_pdf_library_are_not_printed(tmp_path, caplog):
    """They would contain text from the file."""
    path = tmp_path / "paper.pdf"
    path.write_bytes(make_pdf("A chicken crossed.").replace(b"startxref\n", b"startxref\n9"))
    assert "A chicken crossed." in read(path)
    assert not caplog.records


def test_rows_shorter_than_a_wide_header_take_no_time(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(10_000)) + "\n" + "x\n" * 10_000)
    _, rows = converters.read_table(*find([path]))
    assert [row for _, row in rows] == [{"c0": "x"}] * 10_000


def test_pdf_is_read(tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(make_pdf("A chicken crossed."))
    assert "A chicken crossed." in read(path)


def test_pdf_without_text_and_encrypted_pdf_are_refused(tmp_path):
    path = tmp_path / "scan.pdf"
    path.write_bytes(make_pdf(""))
    refused(path, "contains no text; if its pages are images")
    path.write_bytes(make_pdf("secret", password="unknown"))
    refused(path, "scan.pdf is encrypted: save a copy without a password")


@pytest.mark.parametrize("suffix", [".epub", ".docx", ".pdf"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"PK\x03\x04 truncated", b"%PDF-1.4 truncated"])
def test_damaged_file_is_refused_in_one_line(tmp_path, suffix, content):
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(content)
    refused(path, "cannot be read as|contains no text")


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(converters, "LARGEST", 2000)
    with zipfile.ZipFile(tmp_path / "bomb.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.xhtml", b" " * 10_000)
    refused(tmp_path / "bomb.epub", "bomb.epub unpacks to more than")
    monkeypatch.undo()
    with zipfile.ZipFile(tmp_path / "bomb.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.xhtml", b" " * (2**25 + 1))
    refused(tmp_path / "bomb.epub", "bomb.epub unpacks to more than 32 MB")


def test_document_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(converters, "LARGEST", 2000)
    (tmp_path / "large.html").write_bytes(b"x" * 3000)
    refused(tmp_path / "large.html", "large.html is larger than")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("notes.odt", "pandoc -t plain -o .*notes.txt .*notes.odt"),
        ("a.mobi", "ebook-convert .*a.mobi .*a.txt"),
    ],
)
def test_other_kinds_name_the_command_that_converts_them(tmp_path, name, command):
    (tmp_path / name).write_bytes(b"?")
    refused(tmp_path / name, command)


def test_column_of_a_csv_file(tmp_path):
    path = tmp_path / "posts.csv"
    path.write_text('id,text\n1,"Hello, there"\n2,\n3,"Two\nlines"\n', encoding="utf-8-sig")
    assert read(f"{path}:text") == "Hello, there\nTwo\nlines\n"
    refused(path, "posts.csv has id, text: name the column to read, as in .*posts.csv:id")
    refused(f"{path}:body", "has no column body, but id, text")
    empty = tmp_path / "empty.csv"
    empty.touch()
    refused(f"{empty}:body", "has no columns: expected their names in its first line")
    other = tmp_path / "posts.tsv"
    other.write_text("id\ttext\n1\tHello, there\n", encoding="utf-8")
    assert read(f"{other}:text") == "Hello, there\n"
    path.write_text("id;text\n1;Hallo, du\n", encoding="utf-8")
    assert read(f"{path}:text") == "Hallo, du\n"


def test_unconvertible_files_among_others_are_skipped(tmp_path):
    (tmp_path / "a.md").write_text("One.", encoding="utf-8")
    (tmp_path / "b.docx").write_bytes(b"PK")
    (tmp_path / "c.odt").write_bytes(b"?")
    (tmp_path / "d.csv").write_text("id,text\n1,Hello\n")
    kept, messages = readable(list(documents([f"{tmp_path}/*"])))
    assert [Path(each.name).name for each in kept] == ["a.md"]
    assert [message.split(":")[0].replace(str(tmp_path), "") for message in messages] == [
        "skipped /b.docx, which cannot be read as a Word document",
        "skipped /c.odt, which is not plain text",
        "skipped /d.csv, which has id, text",
    ]
    with pytest.raises(UserError, match="has no column body"):  # it was asked for
        readable(list(documents([tmp_path / "a.md", f"{tmp_path / 'd.csv'}:body"])))


def test_folder_includes_what_can_be_converted(tmp_path):
    (tmp_path / "a.md").write_text("One.", encoding="utf-8")
    (tmp_path / "b.html").write_text("<p>Two.</p>", encoding="utf-8")
    (tmp_path / "c.csv").write_text("id\n1\n", encoding="utf-8")
    assert ["".join(each.pieces()).strip() for each in documents([tmp_path])] == ["One.", "Two."]


def test_without_the_extra_the_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inscriptis", None)
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    refused(tmp_path / "page.html", r"pip install 'clearhead\[documents\]'")


def test_missing_part_of_the_extra_is_not_reported_as_damage(tmp_path, monkeypatch):
    (tmp_path / "paper.pdf").write_bytes(make_pdf("A chicken."))
    monkeypatch.setitem(sys.modules, "pypdf", None)
    refused(tmp_path / "paper.pdf", r"needs pypdf, .*pip install 'clearhead\[documents\]'")
