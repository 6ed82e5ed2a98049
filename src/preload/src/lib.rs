//! libcopytune.so: hooks, their life cycle, and the only global state of the project.
//!
//! | module | for |
//! | --- | --- |
//! | stubs | the exported MPI symbols |
//! | call, session | what happens around a call; one thread's sites, engine and operations |
//! | messages, ranges | where a message lies; which copy belongs to which site |
//! | copies, kernel, ucx | the hooked copies |
//! | direct | user-space copies from another process's memory in place of the kernel's |
//! | life, memory | start, end, state between runs |
//! | library, modules, resolve, tls, clock, log | the ground under the rest |

mod call;
mod clock;
mod copies;
mod direct;
mod kernel;
mod library;
mod life;
mod log;
mod memory;
mod messages;
mod modules;
mod ranges;
mod resolve;
mod session;
mod stubs;
mod tls;
mod ucx;

#[ctor::ctor(unsafe)]
fn loaded() {
    copies::find_next();
}
