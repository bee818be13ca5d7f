"""Screens for agreement, calibration and reliability."""
