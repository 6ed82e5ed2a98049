//! What the program must not notice: fork, madvise and mremap mean what they mean for private memory.
//!
//! | module | for |
//! | --- | --- |
//! | bindings | leads the calls of all modules to the hooks here |
//! | discard | madvise and mremap |
//! | fork | a child gets private copies |
//! | raw_calls | the same system calls by number |

pub mod bindings;
pub mod discard;
pub mod fork;
pub mod raw_calls;
