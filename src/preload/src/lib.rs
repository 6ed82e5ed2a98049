//! libcopytune.so: hooks, their life cycle, and the only global state of the project.
//!
//! | module | for |
//! | --- | --- |
//! | stubs, wrapper | the exported MPI symbols; the way through copytune and on |
//! | call, session | what happens around a call; one thread's sites, engine and operations |
//! | threads | the sessions of all threads |
//! | sites, forecast | new call sites; which call comes next |
//! | messages, requests, ranges | where a message lies; what ends an operation; which copy belongs to which site |
//! | copies, kernel, ucx | the hooked copies |
//! | direct | user-space copies from another process's memory in place of the kernel's |
//! | life, memory | start, end, state between runs |
//! | news | what the engine has to say |
//! | presence | which of the exported symbols others see |
//! | library, modules, dynamic, resolve, tls, clock, log, allocation, cancellation | the ground under the rest |

mod allocation;
mod arguments;
mod call;
mod cancellation;
mod clock;
mod collectives;
mod copies;
mod direct;
mod dynamic;
mod entry_points;
mod forecast;
mod job;
mod kernel;
mod library;
mod life;
mod log;
mod memory;
mod messages;
mod modules;
mod news;
mod next;
mod phase;
mod presence;
mod ranges;
mod requests;
mod resolve;
mod sends;
mod session;
mod sites;
mod span;
mod stubs;
mod threads;
mod tls;
mod ucx;
mod words;
mod wrapper;

#[ctor::ctor(unsafe)]
fn loaded() {
    next::find_copies();
    presence::hide();
}
