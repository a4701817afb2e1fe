"""Feedback on events: stored beside the model, recognised when they recur, undone."""

from vace_ad.feedback.journal import FAULT, NORMAL, UNDO, Feedback, Verdict, feedback_path
from vace_ad.feedback.row_ranges import (
    make_verdict,
    merge_matches,
    named_stretches,
    rows_of,
    split_by_feedback,
    with_ratio,
)

__all__ = [
    "FAULT",
    "NORMAL",
    "UNDO",
    "Feedback",
    "Verdict",
    "feedback_path",
    "make_verdict",
    "merge_matches",
    "named_stretches",
    "rows_of",
    "split_by_feedback",
    "with_ratio",
]
