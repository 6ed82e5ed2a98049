//! The words of an intercepted call.

/// The words of an intercepted call, as the wrappers lay them out: six that came in registers (System V ABI for
/// x86-64, 3.2.3), four of the wrapper's own, then the caller's stack.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Arguments(*const usize);

/// Words in registers.
const REGISTER_WORDS: u8 = 6;
/// Words of the wrapper between them and the others; the last is the return address.
const WRAPPER_WORDS: u8 = 4;

impl Arguments {
    /// Where argument `position` lies, in words.
    pub const fn index(position: u8) -> u32 {
        (position
            + if position < REGISTER_WORDS {
                0
            } else {
                WRAPPER_WORDS
            }) as u32
    }

    /// The word at an index that [`Arguments::index`] gave for one of the call's arguments.
    #[inline(always)]
    pub fn at(self, index: u32) -> usize {
        // SAFETY: made by a wrapper, which keeps its words where they are while `enter` and `leave` run; the table of
        // calls has positions below each call's number of arguments only (asserted by `EntryPoint::new`).
        unsafe { *self.0.add(index as usize) }
    }

    /// Argument `position`.
    #[inline(always)]
    pub fn word(self, position: u8) -> usize {
        self.at(Self::index(position))
    }

    /// Where on the stack the call's return address lies.
    #[inline(always)]
    pub fn place(self) -> usize {
        self.0 as usize + usize::from(REGISTER_WORDS + WRAPPER_WORDS - 1) * size_of::<usize>()
    }

    /// Where the call returns to.
    #[inline(always)]
    pub fn return_address(self) -> usize {
        self.at(u32::from(REGISTER_WORDS + WRAPPER_WORDS - 1))
    }
}
