"""The plugin that runs Select and attention of programs that use oneDNN's Graph API.

    LD_PRELOAD=$(python -c "import maskwise.onednn as o; print(o.library())") program

The plugin has no effect on programs that link oneDNN statically.
"""

from __future__ import annotations

import maskwise


def library() -> str:
    """Returns the plugin's path, for `LD_PRELOAD`.

    Raises
    ------
    FileNotFoundError
        The package was built without the plugin.
    """
    return maskwise._library("libmaskwise_onednn.so", "plugin")
