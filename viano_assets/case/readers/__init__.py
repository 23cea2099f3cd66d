"""Report readers: from the bytes of a report to typed sources with their exact places.

`read_report` finds the format, cuts the report into passages by author, redacts each and reads it. What
the formats are and which kinds and attributes the sources carry: docs/case.md.
"""

from __future__ import annotations

from viano_assets.case.readers.report import MAX_REPORT_BYTES, ReportReading, check_report, read_report

__all__ = ["MAX_REPORT_BYTES", "ReportReading", "check_report", "read_report"]
