//! The mechanisms by which messages get across, timed and modelled (docs/models.md).

pub mod prediction;
