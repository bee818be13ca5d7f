"""The Streamlit interface: it draws records and events, and does not know how they were made."""
