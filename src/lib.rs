//! What copytune knows, without a single hook: the routine catalogue, call sites, the flow of calls,
//! the tuner, statistics and the state on disk. The preload library and the command both drive it.

pub mod analysis;
pub mod bench;
pub mod blocks;
pub mod calibration;
pub mod check;
pub mod compare;
pub mod direct;
pub mod engine;
pub mod flow;
pub mod launch;
pub mod models;
pub mod mpi;
pub mod options;
pub mod plot;
pub mod regions;
pub mod report;
pub mod routines;
pub mod scorecard;
pub mod search;
pub mod settings;
pub mod state;
pub mod stats;
pub mod timing;
pub mod tuner;
pub mod units;
