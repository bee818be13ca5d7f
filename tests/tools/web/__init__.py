"""Tests of web searches, on this computer only."""
