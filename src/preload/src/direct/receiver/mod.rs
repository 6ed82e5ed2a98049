//! The receiver: which reads recur, which of them are made directly, and the copy.
//!
//! | module | for |
//! | --- | --- |
//! | candidates | the routines that copy directly |
//! | cooperative_copy | copies a long message together with its sender |
//! | direct_read | finds out where a message lies, and copies it |
//! | ranges | the messages that recur |
//! | peers | the processes that are read from |
//! | read | what is to be read |
//! | reader | the history of reads, and the choice |

pub mod candidates;
pub mod cooperative_copy;
pub mod direct_read;
pub mod peers;
mod ranges;
pub mod read;
pub mod reader;
