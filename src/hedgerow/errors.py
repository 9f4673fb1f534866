# SPDX-License-Identifier: Apache-2.0
"""What Hedgerow raises when the input, not the code, is at fault.

Every message says what is wrong, where, and what to do. The command line prints it and exits with 2; anything
else that reaches the user is a bug and shows its traceback.
"""


class HedgerowError(Exception):
    """Root of all errors that a user can mend."""


class InputError(HedgerowError, ValueError):
    """An argument or array has the wrong type, shape or value."""


class FileError(HedgerowError):
    """A file is missing, damaged, of the wrong kind, or cannot be written."""


class MissingPackage(HedgerowError, ImportError):
    """An optional package is needed for what was asked; the message has the pip line."""


class SocketError(HedgerowError):
    """A port is taken, or nobody answers at an address."""
