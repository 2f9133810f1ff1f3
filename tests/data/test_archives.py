"""An archive becomes a folder, whole or not at all, whatever it holds and promises."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from agcd.data import archives
from agcd.data.archives import archive_name, unpack
from agcd.data.sources import SourceOptions, load_dataset, read_source
from agcd.errors import DataError, StorageError
from support.inputs import content


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def into(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.zip", "a"), ("my.photos.TAR.GZ", "my.photos"), ("x.tgz", "x"), (".zip", None), ("a.csv", None), ("zip", None)],
)
def test_archives_are_known_by_their_suffix(name: str, expected: str | None) -> None:
    assert archive_name(Path(name)) == expected


def test_all_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    members = {"a/1.bin": b"one", "a/b/2.bin": bytes(3_000_000), "empty": b""}
    folder = into(tmp_path / "out")
    unpack(packed(tmp_path / "a.zip", members), folder)
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == members


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "C:\\x", "..\\x", "C:/x"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="would be written outside its folder"):
        unpack(packed(tmp_path / "a.zip", {name: b"x"}), into(tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("a.png")
    info.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        unpack(tmp_path / "a.zip", into(tmp_path / "out"))


def test_too_many_files_too_many_bytes_and_too_little_room_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "a.zip", {"1": b"12345", "2": b"12345", "3": b"12345"})
    for number, (limit, value, kind) in enumerate(
        [("MAX_MEMBERS", 2, DataError), ("MAX_BYTES", 14, DataError), ("RATIO_FROM", 0, None)]
    ):
        with monkeypatch.context() as patch:
            patch.setattr(archives, limit, value)
            folder = into(tmp_path / str(number))
            if kind is None:  # small, and far from a bomb
                unpack(archive, folder)
            else:
                with pytest.raises(kind, match="holds more than"):
                    unpack(archive, folder)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=9))
    with pytest.raises(StorageError, match="does not fit on the disk"):
        unpack(archive, into(tmp_path / "full"))


def test_a_name_that_is_a_file_and_a_folder_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for name in ("a", "a/b"):
            info = tarfile.TarInfo(name)
            info.size = 1
            file.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(DataError, match="both as a file and as a folder"):
        unpack(tmp_path / "a.tar", into(tmp_path / "out"))


def test_a_damaged_member_leaves_nothing_behind(tmp_path: Path) -> None:
    archive = packed(tmp_path / "a.zip", {"cat/1.png": content("a"), "cat/2.png": content("b")})
    data = bytearray(archive.read_bytes())
    data[data.find(content("b")) + 50] ^= 255
    archive.write_bytes(data)
    with pytest.raises(DataError, match=r"not a readable archive \(Bad CRC-32"):
        read_source(archive, SourceOptions(unpack_to=tmp_path / "unpacked"))
    assert not list((tmp_path / "unpacked").iterdir())


def test_an_archive_of_the_same_name_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    options = SourceOptions(unpack_to=tmp_path / "unpacked")
    archive = packed(tmp_path / "a b.zip", {"cat/1.png": content("a"), "dog/1.png": content("b")})
    roots = [read_source(archive, options).root for _ in range(2)]
    assert roots == [tmp_path / "unpacked" / "a_b", tmp_path / "unpacked" / "a_b-2"]


def test_without_a_place_an_archive_is_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path / "a.zip", {"cat/1.png": content("a")})
    with pytest.raises(DataError, match="holds its pictures packed"):
        load_dataset(archive)
