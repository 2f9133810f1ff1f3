"""Which tests stand for which threat, and the table of docs/security.md made from it.

cd tests && python -m support.threats      (collects all tests and writes the table anew)
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from support import TESTS

PAGE = TESTS.parent / "docs" / "security.md"
HEADING = "## Tests by threat\n"
WEB = "app/web/test_web"

THREATS: dict[str, list[str]] = {
    "paths that climb or smuggle, ids that are paths": [
        f"{WEB}_requests.py::test_paths_that_climb",
        f"{WEB}_images.py::test_a_key_is_never_a_path",
        f"{WEB}_images.py::test_a_project_made_by_a_stranger",
        f"{WEB}_image_routes.py::test_a_row_that_is_no_number",
    ],
    "links that lead outside, loop, or are swapped after the scan": [
        "data/test_sources.py::test_links_that_leave",
        "data/test_manifest.py::test_a_link_that_leads_outside",
        f"{WEB}_images.py::test_a_link_swapped",
        f"{WEB}_images.py::test_a_folder_swapped",
        "app/export/test_export_folders.py::test_a_link_in_the_place",
    ],
    "FIFOs, sockets, devices, folders called a.jpg": [
        "data/test_images.py::test_fifo",
        "data/test_images.py::test_a_socket",
        f"{WEB}_images.py::test_what_is_no_file_any_more",
    ],
    "clutter, odd and clashing names of classes and files": [
        "data/test_sources.py::test_clutter",
        "data/test_sources.py::test_odd_class_names",
        "data/test_sources.py::test_two_folders_with_the_same_name",
        "data/test_sources.py::test_names_that_are_not_unicode",
        "app/store/test_names.py",
        "cli/test_terminal.py",
        "app/export/test_export_folders.py::test_a_safe_name",
    ],
    "no image, one, a million; files that change; read-only and full disks": [
        "data/test_sources.py::test_missing_and_empty",
        "app/web/test_page_scale.py",
        "features/test_views.py::test_a_file_that_changed",
        f"{WEB}_images.py::test_a_file_that_changed",
        "app/store/test_seals.py::test_a_read_only",
        "cli/test_upkeep_commands.py::test_a_project_that_may_only_be_read",
        "app/test_full_disk.py",
    ],
    "duplicates, contradictions, unknown ids, leaks of test images": [
        "data/test_sources.py::test_the_same_content_twice",
        "data/test_manifest.py::test_a_file_listed_twice",
        "app/store/test_records.py::test_what_makes_no_sense",
        "app/test_project_folder.py::test_test_images",
    ],
    "damaged, mislabelled and foreign image files": [
        "data/test_images.py::test_truncated",
        "data/test_images.py::test_what_is_not_on_the_allow_list",
        "data/test_images.py::test_formats_that_pillow_knows",
        "data/test_images.py::test_html_after_a_jpeg",
        "data/test_images.py::test_damaged_bytes",
        "test_fuzz.py::test_damaged_pictures",
    ],
    "bombs, endless animations, odd modes, sizes, profiles and orientations": [
        "data/test_images.py::test_too_many_pixels",
        "data/test_images.py::test_a_gif_that_promises",
        "data/test_images.py::test_only_the_first_frame",
        "data/test_images.py::test_cmyk",
        "data/test_images.py::test_tiny_and_thin",
        "data/test_images.py::test_all_eight_exif",
        "data/test_images.py::test_a_malformed_colour_profile",
        "data/test_images.py::test_float_pixels",
    ],
    "decoders that die, hang or take all memory": [
        "data/test_decoding.py",
        "features/test_extract.py::test_a_file_that_kills",
        "features/test_extract.py::test_decoders_that_all_die",
        "features/test_extract.py::test_an_undecodable_file",
        "engine/test_engine_ray.py::test_a_file_that_kills",
    ],
    "hostile tables and JSON in, formulas out": [
        "data/test_manifest.py::test_broken_manifests",
        "data/test_manifest.py::test_byte_order_mark",
        "data/test_manifest.py::test_nested_parquet",
        "data/test_health.py::test_cells_that_would_run",
        "data/test_health.py::test_tables_that_make_no_sense",
        "app/export/test_export_label_studio.py::test_a_bad_file",
        "app/export/test_export_label_studio.py::test_no_hostile_reference",
        "test_fuzz.py::test_damaged_files",
        "test_fuzz.py::test_extreme_files",
    ],
    "hostile archives": [
        "app/test_backup.py::test_a_hostile_backup",
        "app/test_backup.py::test_a_damaged_backup",
        "data/test_archives.py",
        "lab/test_published_fine_grained.py::test_a_member_outside",
        "lab/test_published_fine_grained.py::test_links_and_devices",
        "lab/test_published_fine_grained.py::test_an_archive_that_would_fill",
    ],
    "settings that name code, are unknown or out of range": [
        "test_config.py::test_a_wrong_setting",
        "test_config.py::test_a_broken_settings_file",
        "test_session.py::test_impossible_numbers",
        "data/test_splits.py::test_settings_out_of_range",
        "training/test_finite.py::test_a_learning_rate",
    ],
    "models that would execute, are damaged or do not fit": [
        "features/test_backbones.py::test_a_file_that_would_execute",
        "features/test_backbones.py::test_overlapping_offsets",
        "features/test_backbones.py::test_weights_that_do_not_fit",
        "data/test_arrays.py::test_pickles",
        "lab/test_published_cifar.py::test_a_hostile_pickle",
        "app/export/test_export_classifier.py::test_weights_that_are_not_numbers",
        "training/test_finite.py::test_features_that_turn",
        "test_run_files.py::test_every_damage",
    ],
    "other sites in the browser: Host, Origin, Sec-Fetch-Site, cookies": [
        f"{WEB}_security.py",
        f"{WEB}_login.py::test_the_cookie_is_out_of_reach",
    ],
    "strangers at the door: addresses, tokens, passwords, throttling": [
        f"{WEB}_addresses.py",
        f"{WEB}_login.py",
        f"{WEB}_people.py",
        "app/web/test_browser_people.py",
    ],
    "stored scripts in names, files, notes and messages": [
        "app/web/test_browser_faults.py::test_hostile_names",
        f"{WEB}_api.py::test_hostile_names",
        "app/test_project_report.py::test_hostile_names",
        "report/test_report.py::test_hostile_strings",
        f"{WEB}_images.py::test_nothing_but_pixels",
        f"{WEB}_security.py::test_every_answer_carries",
    ],
    "requests that make the server fetch": [
        "data/test_manifest.py::test_addresses_are_not_fetched",
        "app/export/test_export_label_studio.py::test_no_hostile_reference",
        "test_no_network.py",
    ],
    "storms: ranges, slow clients, huge and deep bodies, floods of pictures": [
        f"{WEB}_image_routes.py::test_a_range",
        f"{WEB}_image_routes.py::test_a_flood",
        f"{WEB}_requests.py::test_a_body_that_never_ends",
        f"{WEB}_requests.py::test_an_unannounced_body",
        "app/web/test_connections.py",
        f"{WEB}_values.py::test_one_request_makes",
        f"{WEB}_values.py::test_hostile_json",
    ],
    "parameters that reach the database": [
        f"{WEB}_api.py::test_parameters_outside",
        f"{WEB}_values.py",
        "app/web/test_openapi_fuzz.py",
        "app/store/test_records.py::test_the_database_itself",
    ],
    "ids of other projects and rounds": [
        f"{WEB}_api.py::test_ids_of_other_places",
        f"{WEB}_values.py::test_a_row_that_is_not_there",
        "app/web/test_openapi.py::test_every_operation",
    ],
    "repeats, two tabs, two people, clocks that jump": [
        f"{WEB}_api.py::test_a_retried",
        f"{WEB}_api.py::test_two_browsers",
        "app/store/test_leases.py",
        "app/store/test_records.py::test_a_repeated_request",
        "app/web/test_browser_faults.py",
    ],
    "answers that are all alike, contradict, or come while training runs": [
        "test_mapping.py",
        "app/test_project.py",
        "app/test_agreement.py",
        "training/test_answers.py::test_all_on_goes",
    ],
    "kill −9 at every step, damage, downgrade": [
        "app/web/test_serve_kills.py",
        "app/test_project_kills.py",
        "app/test_command_kills.py",
        "test_session.py::test_kill_9",
        "app/test_damage.py",
        "app/store/test_seals.py",
        "app/store/test_records.py::test_migrations",
        "test_pinned_formats.py",
    ],
    "the same seed, other threads, orders, locales": [
        "features/test_extract.py::test_numbers_do_not_depend",
        "data/test_sources.py::test_rows_do_not_depend",
        "data/test_splits.py::test_the_same_seed",
        "training/test_n_classes.py::test_the_same_seed",
    ],
    "no GPU, dead ranks, uneven shares": [
        "engine/test_engine_torchrun.py::test_a_broken_run",
        "engine/test_engine_torchrun.py::test_shares_hold",
        "engine/test_engine_torchrun.py::test_processes_end",
        "features/test_backbones.py::test_precision_is_mixed",
    ],
    "supply chain and privacy": [
        "test_supply_chain.py",
        "test_no_network.py",
        "app/export/test_export_onnx.py::test_the_file_names_no_file",
    ],
}
"""In the order of the threats that the project set out from. A test is named by its file, or by how its name begins."""


def files_of(tests: list[str]) -> list[str]:
    return list(dict.fromkeys(f"tests/{name.partition('::')[0]}" for name in tests))


def n_cases(tests: list[str], collected: Mapping[str, int]) -> int:
    """How many cases ``collected`` (by name without parameters) have for these tests."""
    return sum(n for name, n in collected.items() if any(name.startswith(f"tests/{each}") for each in tests))


def lines_of(collected: Mapping[str, int]) -> list[str]:
    """The table, a line per threat."""
    lines = ["| | threat | tests | cases |", "|---|---|---|---|"]
    for number, (threat, tests) in enumerate(THREATS.items(), start=1):
        files = ", ".join(f"`{name.removeprefix('tests/')}`" for name in files_of(tests))
        lines.append(f"| {number} | {threat} | {files} | {n_cases(tests, collected)} |")
    return lines


def collect() -> Counter[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests"]
    listed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True).stdout
    return Counter(re.sub(r"\[.*", "", line) for line in listed.splitlines() if "::" in line)


def write_table(page: Path = PAGE) -> None:
    before, heading, _ = page.read_text(encoding="utf-8").partition(HEADING)
    said = "Every threat that the project set out from has tests; all but those marked `slow` run in `make test`"
    how = "(`cd tests && python -m support.threats` counts them)."
    page.write_text("\n".join([before + heading, f"{said} {how}", "", *lines_of(collect())]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_table()
