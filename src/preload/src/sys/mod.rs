//! The ground under the rest: what a process is made of, and nothing of MPI.
//!
//! | module | for |
//! | --- | --- |
//! | allocation | the allocator, and its reserve for exhausted memory |
//! | cancellation | keeps hooks from becoming cancellation points |
//! | clock | the time stamp counter, or the monotonic clock |
//! | elf | symbol tables, and the slots by which modules call functions |
//! | log | lines on standard error |
//! | modules | loaded modules, and which of them are MPI's |
//! | next | the next implementations of hooked functions |
//! | phase | the flags of copytune's life, and the panic guard |
//! | planted | panics and stops that tests plant |
//! | resolve | looks functions up |
//! | small_file | reads what the kernel tells |
//! | tls | a few bytes for each thread |
//! | warm | maps pages before they are needed |

pub mod allocation;
pub mod cancellation;
pub mod clock;
pub mod elf;
pub mod log;
pub mod modules;
pub mod next;
pub mod phase;
pub mod planted;
pub mod resolve;
pub mod small_file;
pub mod tls;
pub mod warm;
