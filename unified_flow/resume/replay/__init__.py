"""Running a turn again from its journal: recorded answers, no network, no trace in the home."""
