from dataclasses import dataclass, replace

import pytest

from unified_flow.turns.sections import changed


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


def test_it_changes_what_replace_changes() -> None:
    point = Point(1, 2)
    assert changed(point, x=5) == replace(point, x=5) == Point(5, 2)
    assert hash(changed(point, x=1)) == hash(point)
    assert point == Point(1, 2)


def test_a_name_that_is_no_field_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="Point has no field z"):
        changed(Point(1), z=3)
