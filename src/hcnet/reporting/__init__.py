"""Reports: a fitted estimator and some images in one HTML file that needs no network."""

from hcnet.reporting.live import LiveReport
from hcnet.reporting.reports import report, summary

__all__ = ["LiveReport", "report", "summary"]
