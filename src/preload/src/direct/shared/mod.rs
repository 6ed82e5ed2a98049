//! What all parts of direct copies ask for.

pub mod attention;
pub mod headroom;
pub mod promoted;
pub mod report;
pub mod switches;
