"""`int_YYYYMMDD_HHMMSS_xxxxxx`: the moment in UTC and a random part to type."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_id(created_at: datetime) -> str:
    return f"int_{created_at.astimezone(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"
