"""Engines update messages; schedules order the updates; the driver decides when to stop."""
