//! A report as JSON, for scripts.

use serde::Serialize;

use super::rows::Report;

/// Version of the JSON's meaning. Fields may be added without a new one.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    report: &'a Report,
}

/// The report as one JSON object with `"schema": 1`. Times are in seconds, gains are fractions.
///
/// # Errors
/// None that a report could give: its keys are all texts.
pub fn to_json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Document {
        schema: SCHEMA,
        report,
    })
}
