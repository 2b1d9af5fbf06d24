"""Where version 0.1 had the replay: the tests that it exported import it from here."""

import sys

from unified_flow.resume.replay import recording, replay

sys.modules[f"{__name__}.recording"] = recording
sys.modules[f"{__name__}.replay"] = replay
