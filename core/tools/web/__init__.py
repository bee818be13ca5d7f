"""The web, asked through a provider that the operator sets up; off until then.

Only a provider's own API is asked, never a page that it finds. Source: HaluAgent 2.2 (search).
"""
