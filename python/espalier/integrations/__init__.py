"""Trainers of other libraries whose loops are elastic: `espalier.integrations.transformers`."""
