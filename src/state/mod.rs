//! What is remembered between runs: the format on disk and the files that hold it.
