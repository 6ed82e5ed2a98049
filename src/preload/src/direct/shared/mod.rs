//! What all parts of direct copies ask for.
//!
//! | module | for |
//! | --- | --- |
//! | attention | which sends must be seen |
//! | crowd | whether there are fewer processors than threads that call MPI |
//! | headroom | whether there is memory for what is promoted, and for a child's copy of it |
//! | keep | has malloc keep freed memory |
//! | promoted | the addresses of promoted memory |
//! | report | how many direct copies there were, or why none |
//! | returns | which requests of peers were taken, and how many buffers promoted for them |
//! | switches | whether there are direct copies at all |

pub mod attention;
pub mod crowd;
pub mod headroom;
pub mod keep;
pub mod promoted;
pub mod report;
pub mod returns;
pub mod switches;
