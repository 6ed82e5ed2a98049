//! Numbers in the page: as people read them, and exactly.

use std::fmt::Display;

use jiff::Timestamp;
use maud::{Markup, html};

use crate::state::format::{Copied, Gain};
use crate::units;

/// A number as `text`, with its exact value and its place in the JSON of `copytune show` (a JSON pointer, RFC 6901).
pub(super) fn number(at: &str, value: impl Display, text: &str) -> Markup {
    html! { data value=(value) data-at=(at) { (text) } }
}

/// A count.
pub(super) fn count(at: &str, value: u64) -> Markup {
    number(at, value, &units::short_count(value))
}

/// A number of bytes.
pub(super) fn bytes(at: &str, value: u64) -> Markup {
    number(at, value, &units::bytes(value))
}

/// A time, or a dash where it is not known.
pub(super) fn time(at: &str, seconds: Option<f64>) -> Markup {
    match seconds.filter(|seconds| seconds.is_finite()) {
        Some(seconds) => number(at, seconds, &units::time(seconds)),
        None => unknown(),
    }
}

/// A fraction as a percentage with its sign, or a dash.
pub(super) fn percent(at: &str, fraction: f64) -> Markup {
    if fraction.is_finite() {
        number(at, fraction, &units::signed_percent(fraction))
    } else {
        unknown()
    }
}

/// A fraction at the mark of an axis.
pub(super) fn mark(fraction: f64) -> String {
    if fraction == 0.0 {
        "0 %".to_owned()
    } else {
        units::signed_percent(fraction)
    }
}

/// A gain with its interval.
pub(super) fn gain(at: &str, gain: Option<Gain>) -> Markup {
    let Some(gain) = gain else {
        return unknown();
    };
    html! {
        (percent(&format!("{at}/mean"), gain.mean)) " "
        span.interval {
            "(" (percent(&format!("{at}/low"), gain.low)) " … " (percent(&format!("{at}/high"), gain.high)) ")"
        }
    }
}

/// The three ways of copying, each with its share and bytes.
pub(super) fn copied(at: &str, copied: &Copied) -> [Markup; 3] {
    let total = copied.total();
    [
        ("user", copied.user),
        ("kernel", copied.kernel),
        ("unseen", copied.unseen),
    ]
    .map(|(name, part)| {
        html! {
            (units::share(part, total)) " "
            span.interval { "(" (bytes(&format!("{at}/{name}"), part)) ")" }
        }
    })
}

/// What stands for an unknown number.
pub(super) fn unknown() -> Markup {
    html! { span aria-label="not known" { "–" } }
}

/// A moment, in universal time.
pub(super) fn moment(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok().map(Timestamp::from_second);
    match known {
        Some(Ok(moment)) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        _ => "an unknown time".to_owned(),
    }
}
