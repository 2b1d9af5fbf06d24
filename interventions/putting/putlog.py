"""The log record of a put, with the fields that the core document's logging standard names."""

from __future__ import annotations

import logging

from interventions.entry import Entry
from interventions.putting.admission import Admission, AdmissionKind, Limits

logger = logging.getLogger("interventions")


def log_admission(failure: Entry, admission: Admission, limits: Limits) -> None:
    fields = {
        "service": "interventions",
        "component": failure["phase"],
        "operation": "put",
        "error_type": failure["error_type"],
        "error_message": failure["error_message"],
        "session_id": failure["session_id"],
        "turn_id": failure["turn_id"],
        "request_id": failure.get("request_id"),
        "status_code": failure.get("status_code"),
        "intervention_id": admission.intervention_id,
        "admission": str(admission.kind),
    }
    if admission.kind is AdmissionKind.DROPPED:
        if admission.reason == "queue_full":
            text = f"INTERVENTION QUEUE FULL ({limits.max_size}). Dropping: {failure['type']}"
        else:
            text = f"intervention not queued ({admission.reason}): {admission.detail}"
        logger.critical("%s", text, extra=fields)
    elif admission.reason == "session":
        text = f"Session {failure['session_id']} hit intervention limit ({limits.max_per_session})"
        logger.warning("%s", text, extra=fields)
    elif admission.reason == "error_type":
        limit = limits.max_per_error_type
        logger.warning("Error type %s hit limit (%d)", failure["error_type"], limit, extra=fields)
    else:
        logger.info("intervention %s", admission.kind, extra=fields)
