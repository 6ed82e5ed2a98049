//! Reads a call's arguments: where a message lies and how many bytes it has.

use crate::mpi::arguments::Arguments;
use crate::mpi::library::{Layout, Library};
use crate::mpi::span::Span;
use copytune_core::mpi::calls::{Binding, Data};
use core::sync::atomic::{AtomicU64, Ordering};

/// Counts the datatypes that were freed: a handle may come back with another meaning after that.
static FREED: AtomicU64 = AtomicU64::new(1);

/// How many datatypes were freed so far, and one.
#[inline(always)]
pub fn freed() -> u64 {
    FREED.load(Ordering::Relaxed)
}

/// A datatype handle has died.
pub fn datatype_freed() {
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// One end of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message {
    /// Bytes of data.
    pub bytes: u64,
    count: i64,
    key: Key,
}

impl Message {
    /// So many of them, one after the other.
    pub fn times(self, number: i64) -> Self {
        Self {
            bytes: self.bytes.wrapping_mul(number as u64),
            count: self.count.wrapping_mul(number),
            ..self
        }
    }
}

/// A datatype's handle. Fortran's are marked by the highest bit, which no address has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Key(usize);

impl Key {
    const FORTRAN: usize = 1 << 63;

    fn fortran(handle: u32) -> Self {
        Self(handle as usize | Self::FORTRAN)
    }

    fn as_fortran(self) -> Option<i32> {
        (self.0 & Self::FORTRAN != 0).then_some(self.0 as i32)
    }

    /// Where it is kept: Open MPI's handles are aligned addresses, MPICH's have their index in the low byte.
    fn place(self) -> usize {
        (self.0 ^ self.0 >> 5 ^ self.0 >> 10) % CACHED_DATATYPES
    }
}

/// Number of datatypes that are remembered.
const CACHED_DATATYPES: usize = 32;

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    key: Key,
    /// Value of `FREED` when it was asked; 0 is never.
    at: u64,
    layout: Layout,
}

/// One thread's cache of datatype layouts (asking costs up to three calls of the library).
#[derive(Debug)]
pub struct Datatypes {
    library: Library,
    /// The bits of a C handle: of an int or of an address.
    pub handle_mask: usize,
    known: [Known; CACHED_DATATYPES],
}

/// Argument `position` as an integer: by value in C, by reference in Fortran.
#[inline(always)]
pub fn integer(arguments: Arguments, position: u8, binding: Binding) -> i64 {
    let word = arguments.word(position);
    match binding {
        Binding::C => i64::from(word as i32),
        Binding::CLarge => word as i64,
        // SAFETY: the binding passes a default INTEGER by reference (MPI 4.0, A.4); it is the program's, live.
        Binding::Fortran | Binding::FortranDescriptor => unsafe {
            i64::from(*(word as *const i32))
        },
        // SAFETY: the large-count binding passes INTEGER(KIND=MPI_COUNT_KIND), 8 bytes, by reference.
        Binding::FortranDescriptorLarge => unsafe { *(word as *const i64) },
    }
}

impl Datatypes {
    /// An empty cache for `library`'s types.
    pub fn new(library: Library) -> Self {
        Self {
            handle_mask: match library.request_size() {
                4 => 0xffff_ffff,
                _ => usize::MAX,
            },
            library,
            known: [Known::default(); CACHED_DATATYPES],
        }
    }

    /// The library whose types they are.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Bytes of a C request handle of the library.
    pub fn request_size(&self) -> usize {
        self.library.request_size()
    }

    /// One end of the message of a call with these arguments.
    #[inline(always)]
    pub fn message(&mut self, data: Data, binding: Binding, arguments: Arguments) -> Message {
        let count = integer(arguments, data.count, binding);
        if count <= 0 {
            // An empty message may come with any datatype, the null handle included: asking would be an error.
            return Message::default();
        }
        self.elements(count, data.datatype, binding, arguments)
    }

    /// So many elements, at least one, of the datatype at that position.
    #[inline(always)]
    pub fn elements(
        &mut self,
        count: i64,
        datatype: u8,
        binding: Binding,
        arguments: Arguments,
    ) -> Message {
        let word = arguments.word(datatype);
        let key = if binding.is_fortran() {
            // SAFETY: a datatype is an INTEGER, or a derived type that holds one, by reference (MPI 4.0, 19.1).
            Key::fortran(unsafe { *(word as *const u32) })
        } else {
            Key(word & self.handle_mask)
        };
        let at = freed();
        let known = &self.known[key.place()];
        let size = if known.key == key && known.at == at {
            known.layout.size
        } else {
            self.ask(key, at)
        };
        Message {
            bytes: count.wrapping_mul(size) as u64,
            count,
            key,
        }
    }

    /// How far the beginnings of a message's elements lie apart, in bytes.
    pub fn extent(&mut self, message: Message) -> i64 {
        if self.known[message.key.place()].key != message.key {
            self.ask(message.key, freed());
        }
        self.known[message.key.place()].layout.extent
    }

    /// The memory that a message lies in, holes included, relative to its buffer's address.
    pub fn reach(&mut self, message: Message) -> Span {
        if message.bytes == 0 {
            return Span::default();
        }
        if self.known[message.key.place()].key != message.key {
            // Another datatype has taken its place meanwhile.
            self.ask(message.key, freed());
        }
        let layout = self.known[message.key.place()].layout;
        // Wrapping: a span that makes no sense matches no copy.
        let reach = (message.count - 1).wrapping_mul(layout.extent);
        Span {
            start: layout.true_lb.wrapping_add(reach.min(0)) as usize,
            end: layout
                .true_lb
                .wrapping_add(reach.max(0))
                .wrapping_add(layout.true_extent) as usize,
        }
    }

    /// Asks the library for a datatype's layout, keeps it, and returns its size; 0 where there is none to be had.
    #[cold]
    fn ask(&mut self, key: Key, at: u64) -> i64 {
        let layout = match key.as_fortran() {
            Some(handle) => self.library.layout_fortran(handle),
            None if key.0 == self.library.no_datatype => None,
            None => self.library.layout(key.0),
        };
        let Some(layout) = layout else {
            return 0;
        };
        self.known[key.place()] = Known { key, at, layout };
        layout.size
    }
}

/// The memory of a message with this reach, in the buffer that a word of a call stands for.
#[inline(always)]
pub fn placed(reach: Span, buffer: usize) -> Span {
    Span {
        start: buffer.wrapping_add(reach.start),
        end: buffer.wrapping_add(reach.end),
    }
}

/// The same where the word is the address of a descriptor.
pub fn described(reach: Span, descriptor: usize) -> Span {
    let (base, section) = described_buffer(descriptor);
    match section {
        Some(section) if !reach.is_empty() => section,
        _ => placed(reach, base),
    }
}

/// Base address of a CFI descriptor (ISO_Fortran_binding.h: base_addr, elem_len, version, rank, attribute, type,
/// dim[] of lower bound, extent and stride in bytes), and the span of its elements where they are not contiguous.
fn described_buffer(descriptor: usize) -> (usize, Option<Span>) {
    if descriptor == 0 {
        return (0, None);
    }
    // SAFETY: the f08ts bindings pass a live CFI_cdesc_t; its leading members lie at these offsets in GCC's and
    // LLVM's ISO_Fortran_binding.h for 64-bit targets.
    let (base, element, rank) = unsafe {
        let words = descriptor as *const usize;
        (*words, *words.add(1), *(descriptor as *const i8).add(20))
    };
    let (mut low, mut high, mut contiguous) = (0i64, element as i64, element as i64);
    let mut gaps = false;
    for dimension in 0..usize::try_from(rank).unwrap_or(0).min(15) {
        // SAFETY: a descriptor of that rank has that many dimensions of three words each, after 24 bytes.
        let (extent, stride) = unsafe {
            let triple = (descriptor as *const i64).add(3 + 3 * dimension);
            (*triple.add(1), *triple.add(2))
        };
        if extent < 0 {
            // Assumed size: contiguous by definition, its length unknown.
            return (base, None);
        }
        gaps |= stride != contiguous && extent > 1;
        contiguous = contiguous.saturating_mul(extent);
        let reach = (extent - 1).max(0).saturating_mul(stride);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    let span = Span {
        start: (base as i64).saturating_add(low) as usize,
        end: (base as i64).saturating_add(high) as usize,
    };
    (base, gaps.then_some(span))
}
