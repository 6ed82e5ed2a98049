//! libcopytune.so: hooks, their life cycle, and the only global state of the project.
