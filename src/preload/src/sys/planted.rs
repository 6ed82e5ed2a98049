//! Test only: a panic in some part, which the host must survive, or a stop there for ever, in which others must not look at what the
//! part is at. Without the feature `test-switches` nothing is here.

/// Where that can be planted (`COPYTUNE_TEST_PANIC` and `COPYTUNE_TEST_STOP`, by these names in small letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Before a call that is followed.
    Enter,
    /// A call of a dormant thread.
    Dormant,
    /// A send that peers want to know of.
    Send,
    /// After a call that began or ended an operation.
    Leave,
    /// A read from another process.
    Read,
    /// What is learnt of a read that the kernel has made.
    Learn,
    /// Progress of a sender that waits.
    Progress,
    /// madvise(2) of promoted memory.
    Madvise,
    /// mremap(2) of promoted memory.
    Mremap,
    /// Before fork(2).
    Fork,
    /// After it, in the parent.
    Parent,
    /// The same in the child.
    Child,
    /// What is written at the end.
    Save,
}

#[cfg(feature = "test-switches")]
mod switches {
    use super::Part;
    use std::sync::OnceLock;

    /// Where to panic, and where to stop.
    static WANTED: OnceLock<[Option<String>; 2]> = OnceLock::new();

    /// Reads what a test wants.
    pub fn prepare() {
        let names = ["COPYTUNE_TEST_PANIC", "COPYTUNE_TEST_STOP"];
        let _ = WANTED.set(names.map(|name| std::env::var(name).ok()));
    }

    /// Panics or stops if this is the part.
    #[expect(clippy::panic, reason = "that is what it is for")]
    pub fn at(part: Part) {
        let Some(wanted) = WANTED.get() else {
            return;
        };
        let [panics, stops] = wanted.each_ref().map(|wanted| {
            let is_part = |name: &String| format!("{part:?}").eq_ignore_ascii_case(name);
            wanted.as_ref().is_some_and(is_part)
        });
        if stops {
            loop {
                // SAFETY: pause(2) has no arguments.
                unsafe { libc::pause() };
            }
        }
        if panics {
            panic!("planted at {part:?}");
        }
    }
}

#[cfg(feature = "test-switches")]
pub use switches::{at, prepare};

/// Nothing.
#[cfg(not(feature = "test-switches"))]
#[inline(always)]
pub fn at(_: Part) {}
