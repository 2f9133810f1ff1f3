"""The reference of the Python API: what is public, by what it is for. mkdocstrings reads the docstrings."""

from __future__ import annotations

PUBLIC = {
    "The estimator": ["agcd.ActiveDiscovery"],
    "One call": ["agcd.run_experiment", "agcd.summarise"],
    "What is passed around": [
        "agcd.types.Dataset",
        "agcd.types.Split",
        "agcd.types.LabelState",
        "agcd.types.Prediction",
        "agcd.types.LabelMapping",
        "agcd.types.PoolView",
        "agcd.types.Query",
        "agcd.types.NumberOfClasses",
        "agcd.types.Looks",
        "agcd.types.Quarantined",
    ],
    "A strategy declares": [
        "agcd.types.needs",
        "agcd.types.grows_with",
        "agcd.types.one_by_one",
        "agcd.types.OneByOne",
    ],
    "A trainer is given, and gives": [
        "agcd.training.Trainer",
        "agcd.training.job.TrainingJob",
        "agcd.training.job.Outcome",
        "agcd.config.Settings",
    ],
    "Other parts of your own": [
        "agcd.features.cuts.Cut",
        "agcd.data.sources.from_arrays",
        "agcd.data.items.image_dataset",
        "agcd.data.text_items.text_dataset",
        "agcd.app.kinds.ItemKind",
        "agcd.tracking.Tracker",
        "agcd.plugins.Registry",
    ],
    "Settings": ["agcd.config.make_config"],
    "A project": [
        "agcd.app.project.Project",
        "agcd.app.model.train",
        "agcd.app.model.ask",
        "agcd.app.answers.Answer",
        "agcd.app.answers.write_answers",
        "agcd.app.status.status_of",
        "agcd.app.export.classifier.load_classifier",
    ],
}


def page() -> str:
    """A heading for each group, and below it what mkdocstrings makes of each name."""
    lines: list[str] = []
    for title, names in PUBLIC.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"::: {name}", ""]
    return "\n".join(lines)
