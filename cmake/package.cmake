# Install rules and the CMake package are added here by the folders' own lists.
