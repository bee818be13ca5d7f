"""Tests of the tools in the box."""
