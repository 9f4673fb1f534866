# SPDX-License-Identifier: Apache-2.0
"""Look up every installed package in the database of known vulnerabilities: python tools/audit.py

Runs pip-audit, which asks over the network. Exit code 0: every package was looked up and none is known to be
vulnerable. 1: some are; they are listed. 3: not audited, or not all of it, and why. Without a network pip-audit skips
packages and calls that a success; here it is none.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

OWN = "hedgerow"
AUDITED, VULNERABLE, NOT_AUDITED = 0, 1, 3


def main() -> int:
    """Audit the environment of this Python."""
    packages = sorted({f"{each.name}=={each.version}" for each in distributions() if each.name != OWN})
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text("\n".join(packages) + "\n", encoding="utf-8")
        words = ["--strict", "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        command = [sys.executable, "-m", "pip_audit", *words, "--requirement", str(listed)]
        done = subprocess.run(command, capture_output=True, text=True)
    return report(done.stdout, done.stderr, len(packages))


def report(stdout: str, stderr: str, n_packages: int) -> int:
    """Print what pip-audit found, or why it found nothing; return the exit code."""
    try:
        rows: list[dict[str, Any]] = json.loads(stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = (stderr.strip().splitlines() or ["it said nothing"])[-1]
        print(f"not audited: pip-audit gave no answer ({said[:200]})")
        return NOT_AUDITED
    vulnerable = [row for row in rows if row.get("vulns")]
    for row in vulnerable:
        print(f"{row['name']} {row['version']}: {', '.join(each['id'] for each in row['vulns'])}")
    skipped = [f"{row['name']} ({row['skip_reason']})" for row in rows if "skip_reason" in row]
    if skipped or len(rows) < n_packages:
        n_audited = len(rows) - len(skipped)
        print(f"not audited: {n_packages - n_audited} of {n_packages} packages. {'; '.join(skipped[:5])}"[:500])
        return VULNERABLE if vulnerable else NOT_AUDITED
    print(f"audited {len(rows)} packages: {len(vulnerable)} with known vulnerabilities")
    return VULNERABLE if vulnerable else AUDITED


if __name__ == "__main__":
    sys.exit(main())
