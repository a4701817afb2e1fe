"""The report: one HTML file that opens from disk and needs no network."""

from __future__ import annotations

from vace_ad.report.data import Curve, ReportData, WhatIf
from vace_ad.report.write import write_report

__all__ = ["Curve", "ReportData", "WhatIf", "write_report"]
