"""Classes: their folder, their list of students, and bad input."""

import json

import pytest

from clearhead.classroom import course as module
from clearhead.classroom.course import Course, read_course, read_students, write_course
from clearhead.classroom.exercises import EXERCISES
from clearhead.errors import UserError


@pytest.fixture
def quick(monkeypatch):
    """Only exercises whose data is drawn without running the model."""
    monkeypatch.setattr(module, "EXERCISES", [each for each in EXERCISES if each.lecture == "001"])


@pytest.mark.usefixtures("quick")
def test_folder_has_a_notebook_and_solutions_for_each_student(tmp_path):
    counts = []
    written = write_course(Course(3, ("anna", "ben")), tmp_path / "k", counts.append)
    assert counts == [1, 2]
    names = {path.relative_to(tmp_path / "k").as_posix() for path in written}
    assert names == {
        "class.json",
        "notebooks/anna.ipynb",
        "notebooks/ben.ipynb",
        "solutions/anna.ipynb",
        "solutions/ben.ipynb",
        "nbgrader/nbgrader_config.py",
        "nbgrader/source/lectures/lectures.ipynb",
        "otter/lectures.ipynb",
    }
    assert (tmp_path / "k" / "submissions").is_dir()
    assert read_course(tmp_path / "k") == Course(3, ("anna", "ben"))
    anna, ben = (
        json.loads((tmp_path / "k" / "notebooks" / f"{who}.ipynb").read_text()) for who in ("anna", "ben")
    )
    assert anna["cells"][4]["source"] != ben["cells"][4]["source"]


@pytest.mark.usefixtures("quick")
def test_without_students_there_is_one_notebook(tmp_path):
    write_course(Course(3), tmp_path / "k")
    assert [path.name for path in (tmp_path / "k" / "notebooks").iterdir()] == ["everyone.ipynb"]
    course = read_course(tmp_path / "k")
    assert [each.data for each in course.variants("x")] == [each.data for each in course.variants("y")]


@pytest.mark.usefixtures("quick")
def test_same_seed_gives_the_same_files(tmp_path):
    for name in ("one", "two"):
        write_course(Course(3, ("anna",)), tmp_path / name)
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two


def test_full_folder_is_not_overwritten(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="already exists"):
        write_course(Course(1), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "name", ["../anna", "a/b", "", ".hidden", "a\nb", "x" * 65, "everyone", "anna ", "nul\0"]
)
def test_names_that_cannot_be_file_names_are_rejected(name):
    with pytest.raises(UserError, match="cannot be used as a file name"):
        Course(1, (name,))


def test_students_listed_twice_are_rejected():
    with pytest.raises(UserError, match="'anna' is listed twice"):
        Course(1, ("Anna", "ben", "anna"))


def test_students_are_read_from_text_and_csv(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text('\ufeff# id, name\nanna,Anna A.\n\n"ben";Ben\nJosé@uni.example\n', encoding="utf-8")
    assert read_students(path) == ("anna", "ben", "José@uni.example")
    path.write_text("\n")
    with pytest.raises(UserError, match="lists no students"):
        read_students(path)
    with pytest.raises(UserError, match="no such file"):
        read_students(tmp_path / "none.txt")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"format": 2, "seed": 1, "students": []}', '{"format": 1, "seed": "1", "students": []}',
     '{"format": 1, "seed": 1, "students": [3]}', '{"format": 1, "seed": 1, "students": ["../x"]}'],
)  # fmt: skip
def test_damaged_class_json_is_one_error(text, tmp_path):
    (tmp_path / "class.json").write_text(text)
    with pytest.raises(UserError):
        read_course(tmp_path)


def test_flipped_bit_in_class_json_is_noticed(tmp_path):
    """With another seed, every answer would be wrong."""
    write_course(Course(7), tmp_path / "class")
    path = tmp_path / "class" / "class.json"
    assert read_course(tmp_path / "class") == Course(7)
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 5'))
    with pytest.raises(UserError, match=r"class\.json is damaged: its content does not match its hash"):
        read_course(tmp_path / "class")


def test_folder_that_is_not_a_class(tmp_path):
    with pytest.raises(UserError, match=r"has no class\.json"):
        read_course(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        read_course(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file: name the folder"):
        read_course(tmp_path / "file")


def test_part_of_a_class_leads_to_its_folder(tmp_path):
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "anna.ipynb").write_text("{}")
    (tmp_path / "class.json").write_text("{}")
    for part in (tmp_path / "submissions", tmp_path / "submissions" / "anna.ipynb"):
        with pytest.raises(UserError, match="is part of a class: name the folder of the class") as error:
            read_course(part)
        assert str(error.value).endswith(str(tmp_path))
