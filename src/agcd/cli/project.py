"""The commands around a project: make it, train it, ask, and take out what it found."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agcd.cli.options import (
    AddressOption,
    AllowOutsideOption,
    ClassLevelOption,
    ColumnOption,
    EncoderOption,
    EngineOption,
    FollowLinksOption,
    FormatOption,
    GpusOption,
    JsonOption,
    LabelColumnOption,
    LinkColumnOption,
    NodesOption,
    PictureColumnOption,
    ProcessesOption,
    ProjectArgument,
    RendezvousOption,
    SetOption,
    TableOption,
    TrackOption,
    YesOption,
    every_second,
    plain_value,
    tell,
    tell_table,
    with_overrides,
    with_paths_read,
    with_texts_read,
)
from agcd.errors import DataError
from agcd.words import count, typed

if TYPE_CHECKING:
    from agcd.data.reading import Choice, Choose


def init(
    folder: ProjectArgument,
    images: Annotated[
        Path | None, typer.Option(help="A folder (class folders are labels), a list of images, or an archive.")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="A table, a file with one text a line, or a folder of .txt files.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="A table whose rows are shown cell by cell; needs --embeddings.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Items of the kind that --kind names.")] = None,
    kind: Annotated[str | None, typer.Option(help="A kind of items that another package brings; with --items.")] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Vectors of the items (.npy, .npz, .parquet), by ids or in their order.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="CSV with path and label, in place of class folders.")] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.")] = None,
    encoder: EncoderOption = None,
    column: ColumnOption = None,
    label_column: LabelColumnOption = None,
    picture_column: PictureColumnOption = None,
    link_column: LinkColumnOption = None,
    class_level: ClassLevelOption = None,
    follow_links: FollowLinksOption = False,
    allow_outside: AllowOutsideOption = False,
    yes: YesOption = False,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a project from images, texts or records: say what they were understood to be, and how healthy they are."""
    from agcd.app.project import Project
    from agcd.app.status import status_of
    from agcd.data.reading import SourceOptions

    kind, source = one_source({"image": images, "text": texts, "record": records}, kind, items)
    values = with_overrides({}, [*encoder_settings(encoder), *(set_ or [])])
    options = SourceOptions(
        class_level=class_level,
        follow_links=follow_links,
        allow_outside=allow_outside,
        column=column,
        label_column=label_column,
        picture_column=picture_column,
        link_column=link_column,
    )
    lines: list[str] = []
    say = lines.append if as_json else print
    choose = choosing(yes)
    with Project.create(folder, source, labels, classes, values, say, options, choose, kind, embeddings) as project:
        status = status_of(project)
    counts = ("n_images", "n_seeds", "n_classes", "n_test", "n_set_aside")
    facts = {"folder": folder, **{name: getattr(status, name) for name in counts}, "lines": lines}
    tell(as_json, facts, [f"next: agcd serve {folder} (or, without a browser, agcd train {folder})"])


def one_source(given: Mapping[str, Path | None], kind: str | None, items: Path | None) -> tuple[str, Path]:
    """The one source that was named, and the kind of its items."""
    if (kind is None) != (items is None):
        raise DataError("--kind and --items go together: one names the kind of items, the other where they are.")
    found = {**given, **({kind: items} if kind is not None else {})}
    named = [(name, path) for name, path in found.items() if path is not None]
    if len(named) != 1:
        raise DataError("One of --images, --texts and --records is expected: it says what the project is about.")
    return named[0]


def encoder_settings(encoder: str | None) -> list[str]:
    """The settings that ``--encoder`` stands for: the name of an encoder, or a folder that holds one."""
    if encoder is None:
        return []
    if not Path(encoder).is_dir():
        return [f"backbone.name={encoder}"]
    return ["backbone.name=bert", f"backbone.weights={Path(encoder).absolute()}"]


def choosing(yes: bool) -> Choose:
    """How one of several readings of a source is chosen: the first, or as people say, where there are any."""
    from agcd.data.reading import refuse_doubt, take_first

    return take_first if yes else ask_which if has_terminal() else refuse_doubt


def has_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def ask_which(source: Path, doubts: Sequence[str], choices: Sequence[Choice]) -> Choice:
    """Which reading is meant, asked in the terminal; Enter takes the first."""
    for doubt in doubts:
        print(f"not sure: {doubt}")
    for number, choice in enumerate(choices, start=1):
        print(f"  {number}  read it as {choice.words}")
    print("  0  stop here")
    while True:
        said = typer.prompt("which one?", default="1").strip()
        if said == "0":
            raise DataError(f"Nothing was made of {source}: change it, or say --class-level N.")
        if said.isdecimal() and int(said) <= len(choices):
            return choices[int(said) - 1]
        print(f"a number from 0 to {len(choices)} is expected")


def train(
    folder: ProjectArgument,
    engine: EngineOption = "local",
    address: AddressOption = None,
    processes: ProcessesOption = None,
    nodes: NodesOption = 1,
    rendezvous: RendezvousOption = None,
    gpus: GpusOption = None,
    track: TrackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the next round of a project; continues what was broken off."""
    from agcd.app.model import train as train_round
    from agcd.app.project import Project
    from agcd.engine import open_engine
    from agcd.tracking import open_tracking

    tracking = open_tracking(track, folder / "track")
    with Project.open(folder) as project:
        project.engine = open_engine(
            engine, address=address, processes=processes, nodes=nodes, rendezvous=rendezvous, gpus=gpus
        )
        done = train_round(
            project,
            lambda line: print(f"epoch {line['epoch'] + 1} of {line['n_epochs']}", file=sys.stderr),
            track=tracking,
        )
        estimate = None if project.config.n_slots else project.estimated_classes()
    metrics = done.metrics
    facts = {name: metrics[name] for name in ("n_labels", "n_classes", "n_slots", "agreement", "seconds")}
    facts |= {"number": done.round, "is_new": done.is_new, "n_answers": metrics["n_queried"], "estimate": estimate}
    if done.is_new:
        line = f"round {done.round} is trained on {metrics['n_labels']} labels of {metrics['n_classes']} classes"
    else:
        line = f"round {done.round} is up to date: there are no new labels to learn from"
    found = [f"looked for {estimate.words()}"] if estimate else []
    tell(as_json, facts, [line, *found, f"next: agcd query {typed(folder)} -n 20 --out questions.csv"])


def query(
    folder: ProjectArgument,
    n: Annotated[int | None, typer.Option("-n", help="Questions; default one per class to be found.")] = None,
    out: TableOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the items worth asking about as CSV, with an empty column for the labels."""
    from agcd.app.answers import question_table
    from agcd.app.export.row_tables import with_contents
    from agcd.app.model import ask
    from agcd.app.project import Project

    with Project.open(folder) as project:
        table = with_contents(project, question_table(ask(project, n), project.paths))
        tell_table(as_json, "questions", table, out, "csv")


def status(folder: ProjectArgument, as_json: JsonOption = False) -> None:
    """Say what is labelled, asked and trained, and how good the names are."""
    from agcd.app.figures import figures_of
    from agcd.app.project import Project
    from agcd.app.status import status_of

    with Project.open(folder) as project:
        snapshot = project.snapshot()
        found, figures = status_of(project, snapshot), figures_of(snapshot)
    lines, words = found.lines(), {}
    if figures:
        lines += [f"names    {figures.headline}", *(f"  {line}" for line in figures.sentences)]
        words = {"headline": figures.headline, "sentences": figures.sentences}
    counts = {"n_classes": found.n_classes, "n_novel": found.n_novel}
    tell(as_json, plain_value(found) | counts | {"figures": figures and plain_value(figures) | words}, lines)


def predict(
    folder: ProjectArgument,
    new_items: Annotated[
        list[Path],
        typer.Argument(
            metavar="NEW...", help="Folders and files as in init; - reads paths of images, or texts, one a line."
        ),
    ],
    out: TableOption = None,
    format_: FormatOption = None,
    null: Annotated[
        bool, typer.Option("-0", "--null", help="Paths or texts that are read end in NUL, as of find -print0.")
    ] = False,
    engine: EngineOption = "local",
    address: AddressOption = None,
    processes: ProcessesOption = None,
    gpus: GpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the classes of new images, texts or embeddings."""
    from agcd.app.model import predict as predict_items
    from agcd.app.new_items import takes_texts
    from agcd.app.project import Project
    from agcd.engine import open_engine

    with Project.open(folder) as project:
        project.engine = open_engine(engine, address=address, processes=processes, gpus=gpus)
        given = with_texts_read(new_items, null) if takes_texts(project) else with_paths_read(new_items, null)
        table, name = predict_items(project, given), project.kind.name
    n_problems = sum(problem is not None for problem in table["problem"])
    if n_problems:
        print(f"{count(n_problems, name)} could not be used: 'problem' says why", file=sys.stderr)
    tell_table(as_json, f"{name}s", table, out, format_)


def report(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("agcd-report"),
    as_json: JsonOption = False,
) -> None:
    """Write a page about a project: rounds, classes, maps, and what a blind audit says."""
    from agcd.app.project import Project
    from agcd.app.report import write_project_report

    with Project.open(folder) as project:
        made = write_project_report(project, out)
    tell(as_json, {"out": made}, [str(made)])


def export(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Option(help="Folder for labels, predictions and the classifier.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write model.onnx, to class names from pixels or embeddings.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write labels and predictions (CSV, JSONL, Parquet, COCO, FiftyOne, Label Studio) and the classifier."""
    from agcd.app.export.files import export_all
    from agcd.app.project import Project

    with Project.open(folder) as project:
        files = export_all(project, out, onnx=onnx)
    tell(as_json, {"out": out, "files": [path.name for path in files]}, map(str, files))


def sort(
    folder: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="New or empty folder, or one sorted into before.")],
    how: Annotated[
        str, typer.Option(help="copy, or of pictures link (hard links: no space, one disk) or symlink.")
    ] = "copy",
    only_checked: Annotated[
        bool, typer.Option("--only-checked", help="Only items whose class a person said or accepted.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Sort the items into a folder per class; the originals stay as they are, and running again updates."""
    from agcd.app.export.folders import checked_way, sort_into_folders
    from agcd.app.project import Project

    with Project.open(folder) as project:
        way, told = checked_way(how, project.kind), every_second(project.kind.nouns)
        done = sort_into_folders(project, out, way, only_checked=only_checked, progress=told)
    tell(as_json, plain_value(done) | {"sentence": done.sentence()}, [done.sentence()])
