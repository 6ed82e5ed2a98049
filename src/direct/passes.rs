//! Reads of messages that pass unseen. Where hundreds of looks in a row have led to no direct copy, because messages lie in ever other
//! buffers or in very many, a look takes longer than such a message may lose: 0.3 to 1.4 µs beside 4 for a copy of 8 KiB. So only one in
//! some is looked at, which counts for those before it.

/// What a thread lets pass. All zero: nothing.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Passes {
    /// How many more.
    left: u16,
    /// How many have passed since that was asked.
    passed: u16,
    /// They have at least `1 << class` bytes, and less than twice as many.
    class: u32,
    /// Bytes of those that have passed.
    bytes: usize,
}

/// What has passed.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Messages.
    pub messages: u16,
    /// Their bytes.
    pub bytes: usize,
    /// None of them was shorter, nor twice as long.
    pub class_bytes: usize,
}

impl Passes {
    /// Lets so many messages pass that are about as long as one of so many bytes.
    #[inline]
    pub fn allow(&mut self, messages: u16, bytes: usize) {
        (self.left, self.class) = (messages, bytes.checked_ilog2().unwrap_or(0));
    }

    /// Whether a message of so many bytes passes. Legal in a signal handler.
    #[inline(always)]
    pub fn pass(&mut self, bytes: usize) -> bool {
        let passes = self.left > 0 && bytes >> self.class == 1;
        if passes {
            self.left -= 1;
            self.passed = self.passed.saturating_add(1);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        passes
    }

    /// What has passed, if anything has; nothing more passes.
    #[inline]
    pub fn end(&mut self) -> Option<Passed> {
        let Self {
            passed: messages,
            bytes,
            class,
            ..
        } = core::mem::take(self);
        (messages > 0).then_some(Passed {
            messages,
            bytes,
            class_bytes: 1 << class,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_pass_of_about_that_length() {
        let mut passes = Passes::default();
        assert!(!passes.pass(8192) && passes.end().is_none());
        passes.allow(3, 8192);
        // Half as long and twice as long ones are other messages.
        for bytes in [0, 1, 8191, 16384, usize::MAX] {
            assert!(!passes.pass(bytes), "{bytes}");
        }
        assert_eq!(
            [8192, 16383, 9000, 8192].map(|it| passes.pass(it)),
            [true, true, true, false]
        );
        let passed = passes.end().expect("three");
        assert_eq!((passed.messages, passed.class_bytes), (3, 8192));
        assert_eq!(passed.bytes, 8192 + 16383 + 9000);
        assert!(passes.end().is_none());
    }

    #[test]
    fn nothing_more_passes_once_one_is_looked_at() {
        let mut passes = Passes::default();
        passes.allow(3, 8192);
        assert!(passes.pass(8192));
        assert_eq!(passes.end().map(|passed| passed.messages), Some(1));
        assert!(!passes.pass(8192));
    }
}
