"""Prompts: a polygon and its neighbours as text, and the dataset that is made of them."""
