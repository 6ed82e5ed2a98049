//! The `copytune` command: explains, analyses and measures what the preloaded library does.

fn main() {}
