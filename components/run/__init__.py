"""Screens of one run: debate, audit, verdict, evidence, replay."""
