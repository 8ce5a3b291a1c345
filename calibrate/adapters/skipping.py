"""Why a library cannot be timed here, as an exception with the exact reason."""
import importlib


class Skip(Exception):
    """The library cannot run on this machine; the text says why."""


class WrongResult(Exception):
    """The library's result differs from the double-precision reference; nothing is reported for it."""


def require(module_name):
    """Imports a library or raises Skip with the reason as the import system gives it."""
    try:
        return importlib.import_module(module_name)
    except Exception as error:  # a broken extension can raise anything
        raise Skip(f"import {module_name}: {type(error).__name__}: {error}") from error


def require_attribute(module, name):
    value = getattr(module, name, None)
    if value is None:
        raise Skip(f"{module.__name__} has no {name}")
    return value
