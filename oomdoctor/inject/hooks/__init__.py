"""The folder that stands first in PYTHONPATH of a trial; it holds nothing but `sitecustomize`."""
