"""Figures as files: PNG, SVG and PDF, drawn by matplotlib."""
