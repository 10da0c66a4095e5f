"""Copies between many hosts, as tasks of a Dask cluster.

::

    report = farhaul.dask.copy([("dtn1:/data/run42.h5", "archive1:/in/run42.h5"), …], client)
    report.to_dataframe()

The worker of a source pushes its files to a server that the worker of the sink opens for this copy::

    program           scheduler             worker of a source              worker of a sink
    copy() ─ tasks ─▶ ─────────────────────▶ farhaul.copy ════ UDP ════════▶ farhaul.serve
           ◀─ reports ────────────────────── ◀─                                 │
           ◀─ addresses, public keys ────────────────────────────────────────────┘

- **Tasks** copy some seconds of files from one source to one sink. `_plan` joins the pairs. A task runs at the worker of its
  source alone (``workers=``), and takes of the ``resources`` that it is given, so that one NIC or disk is not oversubscribed.
- **Keys** are made by each worker for each copy, and removed with it. Only public ones travel, through the scheduler, which is
  trusted as Dask trusts it: whoever can submit tasks can run any code. A server admits the workers that send to it, and lets
  them read and write only below the directories of its pairs.
- **Failures** are results, because their figures count. The driver repeats what failed (`_driver`), on any worker of the source, and
  an incomplete file goes on where it was.
- **Lost workers**: the driver ends the sessions of a lost source at the sinks, because they hold its files. It opens the server of a
  lost sink at its successor. At most the chunks under way are sent again.
- **The program that ends**, or loses the cluster, is missed after two minutes. Then the workers end what they have for it.
"""

from ._copies import Copies, begin, copy
from ._report import CopyError, CopyReport, FileReport, Progress
from ._sweep import SweepReport, lab_sweep

__all__ = [
    "Copies",
    "CopyError",
    "CopyReport",
    "FileReport",
    "Progress",
    "SweepReport",
    "begin",
    "copy",
    "lab_sweep",
]
