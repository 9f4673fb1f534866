# SPDX-License-Identifier: Apache-2.0
"""Write the tables of sensors and formats into README.md from the code; a test keeps them current.

python tools/readme_tables.py
"""

from pathlib import Path

from hedgerow.io.formats import FORMATS
from hedgerow.sensor.describe import catalogue_rows

PAGE = Path(__file__).parent.parent / "README.md"
SENSOR_COLUMNS = ("name", "maker", "rings", "pulses/s", "range [m]", "elevation [deg]")


def tables() -> dict[str, str]:
    """Return the tables as Markdown, by the name of their marker."""
    sensors = [[f"`{row['name']}`", *(row[key] for key in SENSOR_COLUMNS[1:])] for row in catalogue_rows()]
    formats = [
        [f"`{each.name}`", "yes" if each.reads else "", "yes" if each.writes else "", _plain(each.about)]
        for each in FORMATS
    ]
    return {
        "sensors": _markdown(SENSOR_COLUMNS, sensors),
        "formats": _markdown(("format", "read", "written", "what it is"), formats),
    }


def with_tables(text: str) -> str:
    """Return the page with what stands between the markers of each table replaced."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: tools/readme_tables.py -->\n", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"{PAGE}: expected the markers of {name} once each")
        text = text[: text.index(begin)] + begin + table + text[text.index(end) :]
    return text


def _plain(text: str) -> str:
    return text.replace("*", "\\*").replace("|", "\\|")


def _markdown(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [list(columns), ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
