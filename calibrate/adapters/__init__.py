"""Adapters that time real libraries through their public Python API; see README.md one folder up."""
