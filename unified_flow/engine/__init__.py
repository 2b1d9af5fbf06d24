"""Running a turn: the services of a process, the loop, the boundary, the failure report."""
