//! The decisions about direct copies, without the copies: which way is the fastest ([`mechanism`], [`mechanisms`]), what that saves ([`gain`]), whether a buffer is worth
//! its promotion ([`promotion_budget`]), whether both sides should copy a message together ([`offer_trial`]),
//! whether a peer's answer is waited for ([`patience`]), whether a thread only sends ([`one_way`]), whether a process forks too often ([`fork_cost`]),
//! which promotions share what was asked of the kernel before them ([`burst`]), which are made in one step ([`batch`]),
//! which targets' pages are asked for ([`targets`]), whether the memory of messages is made anew each time ([`remade`]), which messages
//! are not worth a look ([`recurrence`]) and which pass unseen ([`passes`]), which reads are segments of one message ([`segments`]), and whether notices hold short ones whole ([`whole`]).
//!
//! Knows no clock, no memory and no processes.

pub mod batch;
pub mod burst;
pub mod extents;
pub mod fork_cost;
pub mod gain;
pub mod mechanism;
pub mod mechanisms;
pub mod offer_trial;
pub mod one_way;
pub mod passes;
pub mod patience;
pub mod promotion_budget;
pub mod recurrence;
pub mod remade;
pub mod segments;
pub mod targets;
pub mod whole;
