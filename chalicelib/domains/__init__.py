"""One module per noun, or package where a noun needs several: its wire models and operations.

Importing this package declares them all.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
