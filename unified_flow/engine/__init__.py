"""Running a turn: the services of a process, the loop, the boundary, the failure report."""

import logging

# A library leaves it to its program what becomes of a log record.
logging.getLogger("unified_flow").addHandler(logging.NullHandler())
