//! The sender: which buffers are moved into the arena, and what it does while it waits.
//!
//! | module | for |
//! | --- | --- |
//! | devices | whether a device may hold memory of this process |
//! | eligibility | which memory may be moved |
//! | huge_pages | whether memory lies in huge pages |
//! | inner_sends | sends that the MPI library makes inside its other calls |
//! | moving | copies pages into the arena and maps them there |
//! | progress | the libraries' progress functions: answers and shared copies |
//! | promotion | moves buffers, and shows messages |
//! | showing | what is shown now, and when that is over |

mod devices;
pub mod eligibility;
mod huge_pages;
pub mod inner_sends;
mod moving;
pub mod progress;
pub mod promotion;
pub mod showing;
