"""Select and attention of programs that use oneDNN's Graph API, by a plugin in front of oneDNN.

    LD_PRELOAD=$(python -c "import maskwise.onednn as o; print(o.library())") program

It reaches programs that load oneDNN as a shared library, not those that link it statically.
"""

from __future__ import annotations

import maskwise


def library() -> str:
    """Path of the plugin, for `LD_PRELOAD`.

    Raises
    ------
    FileNotFoundError
        The package was built without it.
    """
    return maskwise._library("libmaskwise_onednn.so", "plugin")
