"""Draws Counterpoint's things with Streamlit; knows records and events, never how they came."""
