//! One thread's session: what it knows of its calls and operations, and what it learns.
//!
//! | module | for |
//! | --- | --- |
//! | collectives | the buffers of collectives |
//! | dormancy | calls that pass unseen |
//! | job | what all sessions of a process know |
//! | memory | what is kept between runs |
//! | news | what the engine has to say |
//! | operations | operations in flight, and their buffers |
//! | ownership | whose copy it is |
//! | predictor | which call comes next |
//! | requests | what Start, Wait and Test say of operations |
//! | sends | buffers that receivers may read directly |
//! | session | what happens around a call |
//! | sessions | the sessions of all threads |
//! | sites | new call sites |
//! | standing | copies by routines while no call is followed |
//! | words | the few words that the hooks read |

pub mod collectives;
pub mod dormancy;
pub mod job;
pub mod memory;
pub mod news;
pub mod operations;
pub mod ownership;
pub mod predictor;
pub mod requests;
pub mod sends;
pub mod session;
pub mod sessions;
pub mod sites;
pub mod standing;
pub mod words;
