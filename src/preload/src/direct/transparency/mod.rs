//! What the program must not notice of promoted pages: fork, madvise and mremap mean what they mean for private memory.

pub mod bindings;
pub mod discard;
pub mod fork;
pub mod raw_calls;
