# SPDX-License-Identifier: Apache-2.0
"""Long work in parts: in this process, on several of this machine, or on a Dask cluster, with the same answer.

A job is cut into parts before anybody knows how many workers there are. Each part gives a result that adds to others
exactly, or a file of its own, and results are put together in the order of the parts. So the answer has the same bytes
on any number of workers.

An `Engine` runs the parts (engine.py: in this process; dask_engine.py: on workers). What is finished can be kept in a
folder (results.py), so that a job that was stopped goes on where it was.
"""

from hedgerow.parallel.engine import Engine, InProcess, Shared, current_engine, using
from hedgerow.parallel.results import Results

__all__ = ["Engine", "InProcess", "Results", "Shared", "current_engine", "using"]
