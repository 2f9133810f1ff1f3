"""The parts of the report: figures, thumbnails, tables and words, each on its own."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from agcd.plotting import house_style, png_bytes
from agcd.report import Confidence, Estimate, FeatureMap, RoundFacts, Story
from agcd.report.figures import (
    accuracy_figure,
    agreement_figure,
    balance_figure,
    confidence_figure,
    map_figure,
    progress_figure,
)
from agcd.report.numbers import cards, round_table, summary
from agcd.report.strips import SIDE, Thumbnails, as_square, contact_sheets
from agcd.words import clean, count, percent, points, shown
from support.stories import (
    HOSTILE,
    NAMES,
    toy_map,
    toy_rounds,
    toy_story,
    toy_strips,
    toy_thumbnail,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_can_stop_a_figure(text: str) -> None:
    sheets = contact_sheets([dataclasses.replace(toy_strips()[0], name=text)], Thumbnails(toy_thumbnail))
    for figure in (accuracy_figure(toy_rounds(), {text: toy_rounds()}, text), *sheets):
        assert figure is not None
        figure.set_dpi(40)
        assert png_bytes(figure).startswith(b"\x89PNG")


def test_dollar_signs_and_underscores_reach_the_legend_as_they_are() -> None:
    figure = accuracy_figure(toy_rounds(), {"_a$b$": toy_rounds()})
    assert figure is not None
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["This run", "_a$b$"]
    assert not any(text.get_parse_math() for text in legend.get_texts())


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "I", "F"])
@pytest.mark.parametrize("size", [(1, 1), (400, 300), (300, 400), (1000, 3)])
def test_thumbnails_have_one_size_and_mode_whatever_the_image(mode: str, size: tuple[int, int]) -> None:
    square = as_square(Image.new(mode, size))
    assert square.size == (SIDE, SIDE)
    assert square.mode == "RGB"


def test_novel_classes_come_first_and_then_the_larger() -> None:
    order = [(strip.is_new, strip.size) for strip in toy_story().in_order()]
    assert order == sorted(order, reverse=True)


def test_settings_of_the_user_do_not_reach_the_figures_and_ours_do_not_leak() -> None:
    plain = accuracy_figure(toy_rounds(), {})
    with mpl.rc_context({"text.usetex": True, "font.size": 30, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        figure = accuracy_figure(toy_rounds(), {})
        assert plain is not None
        assert figure is not None
        assert png_bytes(figure) == png_bytes(plain)
        assert dict(mpl.rcParams) == before


def test_figures_ignore_rounds_without_figures() -> None:
    nan = float("nan")
    rounds = (RoundFacts(0, 0), RoundFacts(1, 5, nan, 0.5, nan), *toy_rounds()[2:])
    figure = accuracy_figure(rounds, {"Nobody": (RoundFacts(0, 0),)})
    assert figure is not None
    assert len(figure.axes[0].lines[0].get_xdata()) == 4  # type: ignore[arg-type]
    assert len(figure.axes[0].lines) == 2
    assert accuracy_figure((), {"Random": toy_rounds()}) is None
    assert balance_figure((RoundFacts(0, 0, 0.5),) * 3, {}) is None


def test_map_colours_are_distinct_for_twenty_classes_and_shared_by_old_and_novel() -> None:
    figure = map_figure([toy_map("now", 1.0, 200, 5)])
    assert figure is not None
    keys = figure.legends[0].legend_handles
    colours = [str(key.get_markerfacecolor()) for key in keys if str(key.get_label())[:1].isdigit()]  # type: ignore[union-attr]
    assert len(colours) == 21, "twenty classes, and one entry for the rest"
    assert len(set(colours)) == 21
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels.index("Novel classes") - labels.index("Old classes") == 11
    assert "180 further classes" in labels


def test_map_survives_points_at_infinity_and_classes_without_a_name() -> None:
    xy = np.array([[0.0, 1.0], [np.nan, 2.0], [3.0, np.inf], [1.0, 1.0]])
    nobody = np.zeros(4, bool)
    figure = map_figure([FeatureMap("odd", xy, np.array([0, 0, 7, -1]), nobody, nobody, ("only",))])
    assert figure is not None
    assert png_bytes(figure).startswith(b"\x89PNG")
    assert "2  class 7" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_map_refuses_arrays_of_unequal_length() -> None:
    with pytest.raises(ValueError, match="needs xy"):
        dataclasses.replace(toy_map("x", 1), queried=np.zeros(3, bool))


def test_confidence_of_one_side_only_is_drawn() -> None:
    assert confidence_figure([Confidence("now", np.array([0.5, 1.0]), np.array([]))]) is not None
    assert confidence_figure([Confidence("now", np.array([]), np.array([]))]) is None


def test_a_legend_without_truth_speaks_to_a_person() -> None:
    figure = confidence_figure([Confidence("now", np.array([0.5]), np.array([0.9]))], predicted=True)
    assert figure is not None
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "in known classes",
        "in classes and groups found since",
        "mean",
    ]


def _audited_rounds() -> tuple[RoundFacts, ...]:
    audits = (Estimate(20, 0.4, 0.22, 0.61), Estimate(20, 0.75, 0.53, 0.89))
    return tuple(RoundFacts(t, 8 * t, agreement=0.9, named=0.5 + 0.2 * t, audit=audits[t]) for t in (0, 1))


def test_audits_are_drawn_with_their_intervals() -> None:
    figure = agreement_figure(_audited_rounds())
    assert figure is not None
    (bars,) = figure.axes[0].containers
    (lines,) = bars.get_children()[-1:]
    assert [tuple(segment[:, 1]) for segment in lines.get_segments()] == [(0.22, 0.61), (0.53, 0.89)]  # type: ignore[attr-defined]
    assert progress_figure(_audited_rounds()) is not None
    assert progress_figure(_audited_rounds()[:1]) is None


def test_an_audit_comes_before_the_agreement() -> None:
    story = Story("x", rounds=_audited_rounds())
    assert [card.label for card in cards(story)][:2] == ["Right in the blind audit", "Agreement with your answers"]
    assert summary(story).startswith(
        "After 8 answers, the model is right on 75.0\u00a0% of 20 pictures drawn at random"
    )
    assert ", up from 40.0\u00a0% at the start. It calls 90.0\u00a0% of" in summary(story)
    assert round_table("x", story.rounds).lines[1].cells[1] == ("75.0\u00a0% (53–89\u00a0%)", "")


def test_columns_without_figures_are_left_out_of_the_table() -> None:
    table = round_table("x", [RoundFacts(0, 0, 0.5), RoundFacts(1, 3, None, phase="confident")])
    assert [column.head for column in table.columns] == ["All", "Phase"]
    assert [cell for cell, _ in table.lines[1].cells] == ["–", "confident"]


def test_long_lists_of_mapping_changes_are_folded() -> None:
    line = round_table("x", [RoundFacts(1, 3, mapping_changes=NAMES)]).lines[0]
    assert line.changes + line.more == NAMES
    assert len(line.changes) == 3


def test_summary_compares_rivals_only_at_the_same_number_of_answers() -> None:
    story = toy_story(rivals={"Short": toy_rounds(3), "Full": toy_rounds(gain=0.05)})
    assert "Full" in summary(story)
    assert "Short" not in summary(story)


def test_summary_admits_a_fall() -> None:
    told = summary(Story("x", rounds=(RoundFacts(0, 0, 0.8), RoundFacts(1, 1, 0.7))))
    assert (
        told == "After 1 answer, the model recognises 70.0\u00a0% of the samples, down from 80.0\u00a0% at the start."
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [1, 5, 60])
def test_shown_text_is_one_short_printable_line(text: str, width: int) -> None:
    line = shown(text, width)
    assert line == "(no name)" or 1 <= len(line) <= width
    assert "\n" not in line
    line.encode("utf-8")


def test_words_read_naturally() -> None:
    assert [count(1, "class"), count(1200, "class"), count(2, "answer")] == ["1 class", "1,200 classes", "2 answers"]
    assert [points(0.5, 0.625), points(0.5, 0.4), points(0.5, 0.5001)] == ["+12.5 points", "−10.0 points", "no change"]
    assert [percent(None), percent(float("nan"))] == ["–", "–"]
    assert shown("日本語", 6) == "日本語"
    assert shown("日本語x", 6) == "日本…"
    assert clean("a  b\u202ec") == "a  b c"


def test_house_style_is_left_behind_after_an_error() -> None:
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError), house_style():
        raise ZeroDivisionError
    assert dict(mpl.rcParams) == before
