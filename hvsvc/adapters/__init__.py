"""Adapters: one external system each; they translate its errors once, and nothing else decides here."""
