"""From the records of a run to one self-contained HTML page; knows nothing of networks and data."""

from twofold.report.page import report_page, write_report

__all__ = ["report_page", "write_report"]
