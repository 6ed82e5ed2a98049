//! Times what needs no MPI library: the kernel's copy from another process against one out of a mapping, and what it takes to make a
//! buffer shareable.

use super::plan;
use super::schedule::{Step, Timed};
use crate::models::mechanisms::Mechanism;
use crate::timing::{Process, Transfer, pin, price_of_sharing};
use std::time::Instant;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// What is timed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A buffer becomes one that another process can map.
    Sharing,
    /// A copy from another process.
    Transfer(Transfer),
}

/// Those for which there are processors.
pub fn parts(has_partner: bool) -> Vec<Part> {
    let transfers = [Transfer::Mapping, Transfer::Kernel].map(Part::Transfer);
    let transfers = transfers.into_iter().filter(|_| has_partner);
    std::iter::once(Part::Sharing).chain(transfers).collect()
}

impl Part {
    /// As steps and progress name it.
    pub fn title(self) -> &'static str {
        match self {
            Part::Sharing => "sharing a buffer",
            Part::Transfer(Transfer::Mapping) => "copies out of a mapping",
            Part::Transfer(Transfer::Kernel) => "the kernel's copies",
        }
    }

    fn mechanism(self) -> Mechanism {
        match self {
            Part::Sharing => Mechanism::Promotion,
            Part::Transfer(Transfer::Mapping) => Mechanism::Direct,
            Part::Transfer(Transfer::Kernel) => Mechanism::Kernel,
        }
    }

    /// Times each size once, on a thread of its own, so that the calling one is not bound to a processor.
    ///
    /// # Errors
    /// There is no thread: one sentence. What else is refused is a note of the step.
    pub fn time(
        self,
        processors: (Option<usize>, Option<usize>),
        is_quick: bool,
        seed: u64,
    ) -> Result<Step, String> {
        let began = Instant::now();
        let sizes = plan::sizes(self.mechanism(), 0, is_quick, seed);
        let work = move || self.seconds(processors, &sizes);
        let thread = std::thread::Builder::new()
            .name("copytune-calibrate".to_owned())
            .spawn(work)
            .map_err(|error| format!("no thread can be started: {error}"))?;
        let failed = |_| Err("it failed inside; please report it".to_owned());
        let mut step = Step::default();
        match thread.join().unwrap_or_else(failed) {
            Ok(times) => step.times = times,
            Err(sentence) => step
                .notes
                .push(format!("{} not measured: {sentence}", self.title())),
        }
        step.seconds = began.elapsed().as_secs_f64();
        Ok(step)
    }

    fn seconds(
        self,
        (own, other): (Option<usize>, Option<usize>),
        sizes: &[plan::Size],
    ) -> Result<Vec<Timed>, String> {
        own.map_or(Ok(()), pin)?;
        let longest = sizes.last().map_or(0, |size| size.0 as usize);
        let mut process = match (self, other) {
            (Part::Transfer(_), Some(other)) => Some(Process::start(longest, other)?),
            _ => None,
        };
        let mut time = |bytes: u64| match (self, &mut process) {
            (Part::Transfer(transfer), Some(process)) => process.sample(transfer, bytes as usize),
            (Part::Transfer(_), None) => Err("this needs a second core".to_owned()),
            (Part::Sharing, _) => price_of_sharing(bytes.next_multiple_of(PAGE) as usize),
        };
        let timed = sizes.iter().map(|&(bytes, verifies)| {
            Ok(Timed {
                mechanism: self.mechanism().name().to_owned(),
                bytes,
                verifies,
                seconds: vec![time(bytes)?],
            })
        });
        timed.collect()
    }
}
