# SPDX-License-Identifier: Apache-2.0
"""The one place that imports pyarrow, which carries no type information; loaded only when Parquet is used."""

from importlib import import_module
from typing import Any

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
