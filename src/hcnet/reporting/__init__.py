"""Reports: a fitted estimator and some images in one HTML file that needs no network."""

from hcnet.reporting.reports import LiveReport, report, summary

__all__ = ["LiveReport", "report", "summary"]
