//! The memory of a message.

/// Memory of one message at one end, `[start, end)`; empty where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Whether it holds `address`.
    #[inline(always)]
    pub fn holds(self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.end.wrapping_sub(self.start)
    }

    /// Holds no address, and stands for memory that is not known.
    pub const UNKNOWN: Span = Span {
        start: usize::MAX,
        end: usize::MAX,
    };

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// What an operation sends and receives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spans {
    /// Read by the library.
    pub send: Span,
    /// Written by the library.
    pub receive: Span,
}

impl Spans {
    /// Of a collective: what is read from other processes while it lasts is its own, wherever that goes.
    pub const ALL_READS: Spans = Spans {
        send: Span { start: 0, end: 0 },
        receive: Span::UNKNOWN,
    };
}

/// `of` applied to what belongs to a call's two ends: [`array::map`] is not always compiled in place, which costs each call some
/// hundred instructions.
#[inline(always)]
pub fn both<T, U>([send, receive]: [T; 2], mut of: impl FnMut(T) -> U) -> [U; 2] {
    [of(send), of(receive)]
}
