"""``agcd bench person``: curves, tables, the picture and the command."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest
from typer.testing import CliRunner

from agcd.cli import app
from agcd.errors import ConfigError
from agcd.lab.person.curves import Curve, Moment, Run
from agcd.lab.person.picture import LOOKS, draw_runs
from agcd.lab.person.pool import Start
from agcd.lab.person.run_person import Study, read_errors, report_person, run_person
from agcd.lab.person.tables import person_tables, result_lines
from agcd.lab.person.ways import WAYS, Way


def a_curve(*moments: tuple[float, int, float]) -> Curve:
    return Curve(tuple(Moment(s, k, s / 2, right, right, None) for s, k, right in moments), n_hidden=424)


CURVE = a_curve((0, 0, 0.0), (30, 5, 0.5), (120, 20, 0.85), (150, 25, 0.80))


def test_a_moment_holds_until_the_next() -> None:
    rights = [CURVE.at(minutes).right for minutes in (0, 0.49, 0.5, 1.9, 2, 100)]
    assert rights == [0.0, 0.0, 0.5, 0.5, 0.85, 0.80]


def test_minutes_and_keys_count_until_a_share_is_first_reached() -> None:
    assert [CURVE.minutes_until(share) for share in (0.5, 0.8, 0.9)] == [0.5, 2.0, None]
    assert [CURVE.keys_until(share) for share in (0.5, 0.8, 0.9)] == [5, 20, None]


def test_curves_are_stored_and_read_back() -> None:
    assert Curve.from_json(CURVE.to_json()) == CURVE


def test_tables_have_means_over_seeds_and_say_how_many_got_there() -> None:
    better = a_curve((0, 0, 0.0), (60, 10, 0.96))
    runs = [Run("a/toys", "live", 0, 0.02, CURVE), Run("a/toys", "live", 1, 0.02, better)]
    heads, rule, line = person_tables(runs, 20).splitlines()[2:5]
    assert person_tables(runs, 20).startswith("**toys**, right names (%) of 424 pictures, 2 % wrong answers\n")
    assert heads.split("|")[1:6] == [" way ", " 1 min ", " 2 min ", " 5 min ", " 10 min "]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(rule.split("|")) == len(line.split("|"))
    assert cells[:3] == ["ours, live", "73.0 ± 32.5", "90.5 ± 7.8"]
    assert cells[6:] == ["1.5", "1.0 (1 of 2)", "1.0 (1 of 2)", "10 (1 of 2)", "1.8", "52", "18", "2"]


def test_the_file_has_a_line_for_every_ten_seconds() -> None:
    lines = result_lines(Run("toys", "live", 0, 0.0, CURVE), 2)
    assert [line["seconds"] for line in lines] == list(range(0, 121, 10))
    assert [line["keys"] for line in lines] == [0, 0, 0, *[5] * 9, 20]


def test_every_way_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(WAYS)
    assert len({(look["color"], str(look.get("linestyle"))) for look in LOOKS.values()}) == len(WAYS)
    figure = draw_runs([Run(data, way, 0, 0.0, CURVE) for data in ("a", "b") for way in WAYS], 20)
    assert [axes.get_title() for axes in figure.axes] == ["a, 424 pictures", "b, 424 pictures"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [way.words for way in WAYS.values()]


def test_what_is_stored_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(("toy",), ("clusters",), Start(4, 2, 3), n_seeds=2)
    lines: list[str] = []
    text = report_person(study, tmp_path / "out", tmp_path, lines.append)
    assert len(lines) == 2

    def refuse(*_: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setitem(WAYS, "clusters", Way("naming k-means clusters, K known", refuse))  # type: ignore[arg-type]
    assert report_person(study, tmp_path / "out", tmp_path, lines.append) == text
    with pytest.raises(AssertionError, match="run again"):
        list(run_person(Study(("toy",), ("clusters",), Start(4, 2, 4)), tmp_path / "out", tmp_path))


def test_wrong_rates_of_errors_and_clocks_are_refused(tmp_path: Path) -> None:
    assert read_errors("0, 0.02,0.05") == (0.0, 0.02, 0.05)
    with pytest.raises(ConfigError, match="--errors is 'few': numbers with commas"):
        read_errors("few")
    with pytest.raises(ConfigError, match=r"--waiting is 'wal'. Did you mean 'wall'\?"):
        list(run_person(Study(("toy",), waiting="wal"), tmp_path, tmp_path))
    with pytest.raises(ConfigError, match="--errors has 2: shares from 0 to 1"):
        list(run_person(Study(("toy",), errors=(2.0,)), tmp_path, tmp_path))


def test_the_command_prints_tables_and_leaves_results_and_a_picture(tmp_path: Path) -> None:
    options = ["--classes", "5", "--known", "2", "--labels", "3", "--seeds", "1", "--errors", "0,0.05"]
    place = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--minutes", "2"]
    done = CliRunner().invoke(app, ["bench", "person", "--data", "toy", *options, *place], catch_exceptions=False)
    assert done.exit_code == 0
    assert "toy holds nothing to show: left out 'ours in explicit rounds'" in done.stdout
    assert (tmp_path / "out" / "results.md").read_text(encoding="utf-8") in done.stdout
    assert done.stdout.count("| ours, live | ") == 2
    table = pyarrow.csv.read_csv(tmp_path / "out" / "results.csv")
    assert table.num_rows == (len(WAYS) - 2) * 2 * 13
    assert set(table["way"].to_pylist()) == set(WAYS) - {"page", "rounds"}
    assert (tmp_path / "out" / "person.png").read_bytes().startswith(b"\x89PNG")


def test_texts_are_labelled_by_a_person_who_reads_them(tmp_path: Path) -> None:
    told: list[str] = []
    study = Study(("banking20",), ("live", "one-by-one"), Start(4, 2, 5, 60), 1, minutes=3)
    text = report_person(study, tmp_path / "out", tmp_path / "cache", told.append)
    assert "**banking20**, right names (%) of 50 texts" in text
    live, by_hand = (run.curve for run in run_person(study, tmp_path / "out", tmp_path / "cache", told.append))
    assert live.at(2).right > by_hand.at(2).right
