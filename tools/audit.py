"""Known vulnerabilities in what is installed, by pip-audit: ``python tools/audit.py PIP_AUDIT SITE_PACKAGES``.

Exit code 1 where something is found. Where no advisory database can be reached, one sentence says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

UNREACHED = "Nothing was audited: no advisory database can be reached from here; run `make audit` where one can."


def verdict(output: str, errors: str) -> tuple[str, int]:
    """What to say of pip-audit's answer, and the exit code."""
    try:
        packages: Sequence[Mapping[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return f"{UNREACHED} ({(errors.strip().splitlines() or ['no answer'])[-1][:200]})", 0
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        return UNREACHED, 0
    found = [
        f"{package['name']} {package['version']}: {vuln['id']}, fixed in {', '.join(vuln['fix_versions']) or 'none'}"
        for package in audited
        for vuln in package["vulns"]
    ]
    not_listed = sorted(package["name"] for package in packages if "vulns" not in package)
    lines = [*found, f"{len(audited)} packages audited, {len(found)} known vulnerabilities"]
    return "\n".join(lines + ([f"not audited: {', '.join(not_listed)}"] if not_listed else [])), int(bool(found))


def main() -> None:
    pip_audit, packages = sys.argv[1:3]
    command = [pip_audit, "--path", packages, "--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sentence, code = verdict(done.stdout, done.stderr)
    print(sentence)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
