//! The environment variables, in one table that also documents itself.
